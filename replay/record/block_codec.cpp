#include "replay/record/block_codec.h"

#include <array>

namespace areal::record {

namespace {

static_assert(static_cast<int>(port::TraceWhat::kDropped) == 3, "the first byte of an event has two bits for it");

// Differences wrap, so that every pair of words has one.
std::int64_t step(std::uint64_t from, std::uint64_t to) { return static_cast<std::int64_t>(to - from); }
std::uint64_t stepped(std::uint64_t from, std::int64_t by) { return from + static_cast<std::uint64_t>(by); }

// A cause is written as how far back it lies, and "none" (0) as the shortest number; one to one over all words.
std::uint64_t cause_code(std::uint64_t seq, std::uint64_t cause) {
  const std::uint64_t back = seq - cause;
  if (back == seq) return 0;
  return back < seq ? back + 1 : back;
}
std::uint64_t cause_of(std::uint64_t seq, std::uint64_t code) {
  if (code == 0) return 0;
  return seq - (code <= seq ? code - 1 : code);
}

class BlockDecoder {
 public:
  BlockDecoder(std::span<const std::uint8_t> bytes, port::TraceSink& sink) : in_(bytes), sink_(sink) {}

  Status decode(std::uint64_t lines) {
    for (std::uint64_t line = 0; line < lines; ++line) {
      const std::uint8_t head = in_.u8();
      switch (static_cast<LineKind>(head & kLineKindMask)) {
        case LineKind::kEvent:
          read_event(head);
          break;
        case LineKind::kState:
          read_state(head);
          break;
        case LineKind::kStream:
          read_stream();
          break;
        case LineKind::kDecision:
          read_decision(head);
          break;
      }
      if (!ok_ || !in_.ok()) return Error{Errc::kCorrupt, "an event block does not decode"};
    }
    if (!in_.at_end()) return Error{Errc::kCorrupt, "an event block has more lines than stated"};
    return Unit{};
  }

 private:
  void read_place(std::uint8_t head) {
    if ((head & kSamePlace) != 0) return;
    memory_.node.value = stepped(memory_.node.value, in_.signed_varint());
    memory_.slot.value = in_.varint();
  }

  Record read_record() {
    Record record;
    const std::uint64_t kind = in_.varint();
    record.kind = static_cast<KindId>(kind);
    record.size = in_.u8();
    ok_ = ok_ && kind <= 0xFFFF && record.size <= kMaxRecordWords;
    if (!ok_) return {};
    Record& before = memory_.of_kind(record.kind);
    const std::uint64_t changed = in_.varint();
    ok_ = changed >> record.size == 0;
    for (std::size_t i = 0; i < record.size; ++i) {
      record.words[i] = before.words[i];
      if ((changed >> i & 1) != 0) record.words[i] = stepped(before.words[i], in_.signed_varint());
      before.words[i] = record.words[i];
    }
    return record;
  }

  void read_event(std::uint8_t head) {
    port::TraceEvent event;
    event.what = static_cast<port::TraceWhat>(head >> kWhatShift & 3);
    event.seq = (head & kNextSeq) != 0 ? memory_.seq + 1 : stepped(memory_.seq, in_.signed_varint());
    event.cause = cause_of(event.seq, in_.varint());
    read_place(head);
    event.node = memory_.node;
    event.slot = memory_.slot;
    BlockMemory::Node& node = memory_.of(event.node);
    event.incarnation = static_cast<Incarnation>(stepped(node.incarnation, in_.signed_varint()));
    event.lamport = stepped(node.lamport + 1, in_.signed_varint());
    event.at.ns = static_cast<std::int64_t>(stepped(static_cast<std::uint64_t>(memory_.at_ns), in_.signed_varint()));
    if ((head & kHasRule) != 0) event.rule = static_cast<std::uint32_t>(in_.varint());
    event.record = read_record();
    if ((head & kHasBody) != 0) event.body = read_record();
    memory_.seq = event.seq;
    memory_.at_ns = event.at.ns;
    node = {event.lamport, event.incarnation};
    if (ok_ && in_.ok()) sink_.on_event(event);
  }

  void read_state(std::uint8_t head) {
    read_place(head);
    Digest128& state = memory_.of(memory_.node, memory_.slot);
    if ((head & kSameState) == 0) {
      state.high = in_.u64();
      state.low = in_.u64();
    }
    if (in_.ok()) sink_.on_state(memory_.node, memory_.slot, state);
  }

  void read_stream() {
    const auto stream = static_cast<std::uint32_t>(in_.varint());
    const std::string name = in_.text();
    if (in_.ok()) sink_.on_stream(stream, name);
  }

  void read_decision(std::uint8_t head) {
    port::Decision decision;
    decision.stream = static_cast<std::uint32_t>(in_.varint());
    BlockMemory::Stream& stream = memory_.of_stream(decision.stream);
    decision.ordinal = (head & kNextOrdinal) != 0 ? stream.ordinal + 1 : in_.varint();
    decision.bound = (head & kSameBound) != 0 ? stream.bound : in_.varint();
    decision.chosen = (head & kChoseZero) != 0 ? 0 : in_.varint();
    stream = {decision.ordinal, decision.bound};
    if (in_.ok()) sink_.on_decision(decision);
  }

  ByteReader in_;
  port::TraceSink& sink_;
  BlockMemory memory_;
  bool ok_ = true;
};

}  // namespace

void BlockEncoder::write_place(NodeId node, SlotId slot, std::uint8_t head) {
  if ((head & kSamePlace) != 0) return;
  out_.signed_varint(step(memory_.node.value, node.value));
  out_.varint(slot.value);
  memory_.node = node;
  memory_.slot = slot;
}

void BlockEncoder::write_record(const Record& record) {
  Record& before = memory_.of_kind(record.kind);
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < record.size; ++i) {
    if (record.words[i] != before.words[i]) changed |= std::uint64_t{1} << i;
  }
  out_.varint(record.kind);
  out_.u8(record.size);
  out_.varint(changed);
  for (std::size_t i = 0; i < record.size; ++i) {
    if ((changed >> i & 1) != 0) out_.signed_varint(step(before.words[i], record.words[i]));
    before.words[i] = record.words[i];
  }
}

void BlockEncoder::on_event(const port::TraceEvent& event) {
  auto head = static_cast<std::uint8_t>(LineKind::kEvent);
  head |= static_cast<std::uint8_t>(static_cast<unsigned>(event.what) << kWhatShift);
  if (event.seq == memory_.seq + 1) head |= kNextSeq;
  if (event.node == memory_.node && event.slot == memory_.slot) head |= kSamePlace;
  if (event.rule != 0) head |= kHasRule;
  if (event.body.kind != 0 || event.body.size != 0) head |= kHasBody;
  out_.u8(head);
  if ((head & kNextSeq) == 0) out_.signed_varint(step(memory_.seq, event.seq));
  out_.varint(cause_code(event.seq, event.cause));
  write_place(event.node, event.slot, head);
  BlockMemory::Node& node = memory_.of(event.node);
  out_.signed_varint(step(node.incarnation, event.incarnation));
  out_.signed_varint(step(node.lamport + 1, event.lamport));
  out_.signed_varint(step(static_cast<std::uint64_t>(memory_.at_ns), static_cast<std::uint64_t>(event.at.ns)));
  if (event.rule != 0) out_.varint(event.rule);
  write_record(event.record);
  if ((head & kHasBody) != 0) write_record(event.body);
  memory_.seq = event.seq;
  memory_.at_ns = event.at.ns;
  node = {event.lamport, event.incarnation};
  ++lines_;
  ++events_;
}

void BlockEncoder::on_state(NodeId node, SlotId slot, const Digest128& digest) {
  Digest128& before = memory_.of(node, slot);
  auto head = static_cast<std::uint8_t>(LineKind::kState);
  if (node == memory_.node && slot == memory_.slot) head |= kSamePlace;
  if (before == digest) head |= kSameState;
  out_.u8(head);
  write_place(node, slot, head);
  if (before != digest) {
    out_.u64(digest.high);
    out_.u64(digest.low);
    before = digest;
  }
  ++lines_;
}

void BlockEncoder::on_stream(std::uint32_t stream, std::string_view name) {
  out_.u8(static_cast<std::uint8_t>(LineKind::kStream));
  out_.varint(stream);
  out_.text(name);
  ++lines_;
}

void BlockEncoder::on_decision(const port::Decision& decision) {
  BlockMemory::Stream& stream = memory_.of_stream(decision.stream);
  auto head = static_cast<std::uint8_t>(LineKind::kDecision);
  if (decision.ordinal == stream.ordinal + 1) head |= kNextOrdinal;
  if (decision.bound == stream.bound) head |= kSameBound;
  if (decision.chosen == 0) head |= kChoseZero;
  out_.u8(head);
  out_.varint(decision.stream);
  if ((head & kNextOrdinal) == 0) out_.varint(decision.ordinal);
  if ((head & kSameBound) == 0) out_.varint(decision.bound);
  if ((head & kChoseZero) == 0) out_.varint(decision.chosen);
  stream = {decision.ordinal, decision.bound};
  ++lines_;
}

void BlockEncoder::clear() {
  out_.clear();
  memory_.clear();
  lines_ = 0;
  events_ = 0;
}

Status decode_block(std::span<const std::uint8_t> bytes, std::uint64_t lines, port::TraceSink& sink) {
  return BlockDecoder(bytes, sink).decode(lines);
}

}  // namespace areal::record
