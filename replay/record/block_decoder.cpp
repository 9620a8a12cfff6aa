// The reading half of block_codec.h.
#include <algorithm>

#include "replay/record/block_codec.h"

namespace areal::record {

namespace {

// Reads one column. What is read beyond the end is 0, and the first failure of any column of a block sticks.
class ColumnReader {
 public:
  ColumnReader() = default;
  ColumnReader(std::span<const std::uint8_t> bytes, bool& ok)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()), ok_(&ok) {}

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && next_ != end_; shift += 7) {
      const std::uint8_t byte = *next_++;
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte >= 0x80) continue;
      if (shift == 63 && byte > 1) break;
      return value;
    }
    return fail();
  }
  std::int64_t signed_varint() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::uint64_t u64() {
    if (end_ - next_ < 8) return fail();
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= std::uint64_t{next_[i]} << 8 * i;
    next_ += 8;
    return value;
  }
  [[nodiscard]] bool at_end() const { return next_ == end_; }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }

 private:
  std::uint64_t fail() {
    next_ = end_;
    *ok_ = false;
    return 0;
  }

  const std::uint8_t* next_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool* ok_ = nullptr;
};

class BlockDecoder {
 public:
  explicit BlockDecoder(port::TraceSink& sink) : sink_(sink) {}

  Status decode(std::span<const std::uint8_t> bytes, std::uint64_t lines) {
    if (!cut(bytes)) return Error{Errc::kCorrupt, "the columns of an event block are not as long as stated"};
    for (std::uint64_t line = 0; line < lines; ++line) {
      if (!read_line()) return Error{Errc::kCorrupt, "an event block does not decode"};
    }
    for (const ColumnReader& column : columns_) {
      if (!column.at_end()) return Error{Errc::kCorrupt, "an event block has more lines than stated"};
    }
    return Unit{};
  }

 private:
  ColumnReader& in(Column which) { return columns_[static_cast<std::size_t>(which)]; }

  bool cut(std::span<const std::uint8_t> bytes) {
    ColumnReader head(bytes, ok_);
    std::array<std::uint64_t, kColumns> sizes{};
    std::uint64_t total = 0;
    for (std::uint64_t& size : sizes) {
      size = head.varint();
      if (!ok_ || size > bytes.size()) return false;
      total += size;
    }
    if (total > bytes.size()) return false;
    auto rest = bytes.last(static_cast<std::size_t>(total));
    if (head.left() != total) return false;
    for (std::size_t i = 0; i < kColumns; ++i) {
      columns_[i] = ColumnReader(rest.first(static_cast<std::size_t>(sizes[i])), ok_);
      rest = rest.subspan(static_cast<std::size_t>(sizes[i]));
    }
    return true;
  }

  bool read_line() {
    const std::uint64_t number = in(Column::kShapeOf).varint();
    if (number > shapes_.size()) return false;
    if (number == shapes_.size()) {
      const std::uint64_t head = in(Column::kShapes).varint();
      shapes_.push_back({head, in(Column::kShapes).varint()});
    }
    const LineShape shape = shapes_[number];
    switch (static_cast<LineKind>(shape.head & 3)) {
      case LineKind::kEvent:
        return read_event(shape);
      case LineKind::kState:
        return read_state(shape.head);
      case LineKind::kStream:
        return read_stream();
      case LineKind::kDecision:
        return read_decision(shape.head);
    }
    return false;
  }

  void read_place(std::uint64_t head) {
    if ((head & kSamePlace) != 0) return;
    memory_.node.value = stepped(memory_.node.value, in(Column::kNodes).signed_varint());
    memory_.slot.value = in(Column::kSlots).varint();
  }

  bool read_record(std::uint64_t bits, Record& record) {
    const RecordShape shape = record_shape(bits);
    if (shape.size > kMaxRecordWords || shape.changed >> shape.size != 0) return false;
    record.kind = static_cast<KindId>(shape.kind);
    record.size = static_cast<std::uint8_t>(shape.size);
    BlockMemory::Words& before = memory_.of_kind(shape.kind);
    for (std::uint64_t left = shape.changed; left != 0; left &= left - 1) {
      std::uint64_t& word = before[static_cast<std::size_t>(std::countr_zero(left))];
      const std::int64_t difference = in(Column::kWords).signed_varint();
      word = difference != 0 ? stepped(word, difference) : in(Column::kWhole).u64();
    }
    std::copy_n(before.data(), record.size, record.words.data());
    return true;
  }

  bool read_event(const LineShape& shape) {
    const std::uint64_t head = shape.head;
    port::TraceEvent& event = event_;
    event.what = static_cast<port::TraceWhat>(head >> kWhatShift & 3);
    event.seq = memory_.seq + 1;
    if ((head & kOddSeq) != 0) event.seq = stepped(event.seq, in(Column::kSeqs).signed_varint());
    event.cause = memory_.likely_cause(event.what);
    if ((head & kOddCause) != 0) event.cause = cause_of(event.seq, in(Column::kCauses).varint());
    read_place(head);
    event.node = memory_.node;
    event.slot = memory_.slot;
    const BlockMemory::Node& node = memory_.of(event.node);
    event.incarnation = node.incarnation;
    if ((head & kOddIncarnation) != 0) {
      event.incarnation =
          static_cast<Incarnation>(stepped(node.incarnation, in(Column::kIncarnations).signed_varint()));
    }
    event.lamport = node.lamport + 1;
    if ((head & kOddLamport) != 0) event.lamport = stepped(event.lamport, in(Column::kLamports).signed_varint());
    event.at.ns = memory_.at_ns;
    if ((head & kOddTime) != 0) {
      event.at = from_word<Instant>(stepped(to_word(event.at), in(Column::kTimes).signed_varint()));
    }
    event.rule = (head & kHasRule) != 0 ? static_cast<std::uint32_t>(in(Column::kRules).varint()) : 0;
    if (!read_record(head >> kRecordShift, event.record)) return false;
    event.body.kind = 0;
    event.body.size = 0;
    if (shape.body != 0 && !read_record(shape.body, event.body)) return false;
    memory_.after(event);
    if (!ok_) return false;
    sink_.on_event(event);
    return true;
  }

  bool read_state(std::uint64_t head) {
    read_place(head);
    Digest128& state = memory_.of(memory_.node, memory_.slot);
    if ((head & kSameState) == 0) {
      state.high = in(Column::kWhole).u64();
      state.low = in(Column::kWhole).u64();
    }
    if (!ok_) return false;
    sink_.on_state(memory_.node, memory_.slot, state);
    return true;
  }

  bool read_stream() {
    const auto stream = static_cast<std::uint32_t>(in(Column::kStreams).varint());
    std::string name;
    for (std::uint64_t left = in(Column::kNames).varint(); left > 0 && ok_; --left) {
      name.push_back(static_cast<char>(in(Column::kNames).varint()));
    }
    if (!ok_) return false;
    sink_.on_stream(stream, name);
    return true;
  }

  bool read_decision(std::uint64_t head) {
    port::Decision decision;
    decision.stream = static_cast<std::uint32_t>(in(Column::kStreams).varint());
    BlockMemory::Stream& stream = memory_.of_stream(decision.stream);
    decision.ordinal = (head & kNextOrdinal) != 0 ? stream.ordinal + 1 : in(Column::kOrdinals).varint();
    decision.bound = (head & kSameBound) != 0 ? stream.bound : in(Column::kBounds).varint();
    decision.chosen = (head & kChoseZero) != 0 ? 0 : in(Column::kChosen).varint();
    stream = {decision.ordinal, decision.bound};
    if (!ok_) return false;
    sink_.on_decision(decision);
    return true;
  }

  std::array<ColumnReader, kColumns> columns_{};
  bool ok_ = true;
  port::TraceSink& sink_;
  BlockMemory memory_;
  std::vector<LineShape> shapes_;
  port::TraceEvent event_;
};

}  // namespace

Status decode_block(std::span<const std::uint8_t> bytes, std::uint64_t lines, port::TraceSink& sink) {
  return BlockDecoder(sink).decode(bytes, lines);
}

}  // namespace areal::record
