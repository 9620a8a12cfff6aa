// The writing half of block_codec.h.
#include "replay/record/block_codec.h"

namespace areal::record {

namespace {

// Shapes beyond these are written again each time: a block that has so many gains nothing by remembering more.
constexpr std::uint32_t kMostRemembered = kPlaces / 2;

std::int64_t step(std::uint64_t from, std::uint64_t to) { return static_cast<std::int64_t>(to - from); }
std::uint64_t line_bits(LineKind kind) { return static_cast<std::uint64_t>(kind); }

// Where to look for a shape first: the upper bits of a product, which all bits of the shape reach.
constexpr std::size_t place_of(const LineShape& shape) {
  constexpr std::uint64_t kOdd = 0x9E37'79B9'7F4A'7C15;
  return static_cast<std::size_t>(((shape.head + shape.body * 31) * kOdd) >> (64 - kPlaceBits));
}

// Differences of more bits than these would take more bytes than the word itself.
constexpr int kSmallBits = 55;
bool is_small(std::int64_t difference) {
  return difference < (std::int64_t{1} << kSmallBits) && difference >= -(std::int64_t{1} << kSmallBits);
}

}  // namespace

BlockEncoder::BlockEncoder() : places_(kPlaces) {}

void BlockEncoder::write_shape(const LineShape& shape) {
  ++lines_;
  std::size_t at = place_of(shape);
  for (; places_[at].block == block_; at = (at + 1) % kPlaces) {
    if (places_[at].shape == shape) return column(Column::kShapeOf).varint(places_[at].number);
  }
  column(Column::kShapeOf).varint(shapes_);
  column(Column::kShapes).varint(shape.head);
  column(Column::kShapes).varint(shape.body);
  if (shapes_ < kMostRemembered) places_[at] = {shape, shapes_, block_};
  ++shapes_;
}

bool BlockEncoder::moves_to(NodeId node, SlotId slot) { return node != memory_.node || slot != memory_.slot; }

void BlockEncoder::write_place(NodeId node, SlotId slot) {
  column(Column::kNodes).signed_varint(step(memory_.node.value, node.value));
  column(Column::kSlots).varint(slot.value);
  memory_.node = node;
  memory_.slot = slot;
}

// The record's shape; what differs goes to the columns.
std::uint64_t BlockEncoder::write_record(const Record& record) {
  BlockMemory::Words& before = memory_.of_kind(record.kind);
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < record.size; ++i) {
    const std::int64_t difference = step(before[i], record.words[i]);
    if (difference == 0) continue;
    changed |= std::uint64_t{1} << i;
    before[i] = record.words[i];
    size_ += 2;
    if (is_small(difference)) {
      column(Column::kWords).signed_varint(difference);
    } else {
      column(Column::kWords).varint(0);
      column(Column::kWhole).u64(record.words[i]);
    }
  }
  return to_bits({.kind = record.kind, .size = record.size, .changed = changed});
}

void BlockEncoder::on_event(const port::TraceEvent& event) {
  const BlockMemory::Node& node = memory_.of(event.node);
  std::uint64_t head = line_bits(LineKind::kEvent) | to_word(event.what) << kWhatShift;
  if (event.seq != memory_.seq + 1) {
    head |= kOddSeq;
    column(Column::kSeqs).signed_varint(step(memory_.seq + 1, event.seq));
  }
  if (event.cause != memory_.likely_cause(event.what)) {
    head |= kOddCause;
    column(Column::kCauses).varint(cause_code(event.seq, event.cause));
  }
  if (event.incarnation != node.incarnation) {
    head |= kOddIncarnation;
    column(Column::kIncarnations).signed_varint(step(node.incarnation, event.incarnation));
  }
  if (event.lamport != node.lamport + 1) {
    head |= kOddLamport;
    column(Column::kLamports).signed_varint(step(node.lamport + 1, event.lamport));
  }
  if (event.at.ns != memory_.at_ns) {
    head |= kOddTime;
    column(Column::kTimes).signed_varint(step(to_word(Instant{memory_.at_ns}), to_word(event.at)));
  }
  if (event.rule != 0) {
    head |= kHasRule;
    column(Column::kRules).varint(event.rule);
  }
  if (moves_to(event.node, event.slot)) {
    write_place(event.node, event.slot);
  } else {
    head |= kSamePlace;
  }
  head |= write_record(event.record) << kRecordShift;
  const bool has_body = event.body.kind != 0 || event.body.size != 0;
  write_shape({head, has_body ? write_record(event.body) : 0});
  memory_.after(event);
  size_ += 4;
  ++events_;
}

void BlockEncoder::on_state(NodeId node, SlotId slot, const Digest128& digest) {
  std::uint64_t head = line_bits(LineKind::kState);
  if (moves_to(node, slot)) {
    write_place(node, slot);
  } else {
    head |= kSamePlace;
  }
  Digest128& before = memory_.of(node, slot);
  if (before == digest) {
    head |= kSameState;
  } else {
    column(Column::kWhole).u64(digest.high);
    column(Column::kWhole).u64(digest.low);
    before = digest;
    size_ += 16;
  }
  size_ += 2;
  write_shape({head, 0});
}

void BlockEncoder::on_stream(std::uint32_t stream, std::string_view name) {
  column(Column::kStreams).varint(stream);
  column(Column::kNames).varint(name.size());
  for (const char c : name) column(Column::kNames).varint(static_cast<std::uint8_t>(c));
  size_ += 8 + name.size();
  write_shape({line_bits(LineKind::kStream), 0});
}

void BlockEncoder::on_decision(const port::Decision& decision) {
  BlockMemory::Stream& stream = memory_.of_stream(decision.stream);
  std::uint64_t head = line_bits(LineKind::kDecision);
  column(Column::kStreams).varint(decision.stream);
  if (decision.ordinal == stream.ordinal + 1) {
    head |= kNextOrdinal;
  } else {
    column(Column::kOrdinals).varint(decision.ordinal);
  }
  if (decision.bound == stream.bound) {
    head |= kSameBound;
  } else {
    column(Column::kBounds).varint(decision.bound);
  }
  if (decision.chosen == 0) {
    head |= kChoseZero;
  } else {
    column(Column::kChosen).varint(decision.chosen);
  }
  stream = {decision.ordinal, decision.bound};
  size_ += 4;
  write_shape({head, 0});
}

std::span<const std::uint8_t> BlockEncoder::bytes() {
  out_.clear();
  for (const ColumnWriter& column : columns_) out_.varint(column.size());
  for (const ColumnWriter& column : columns_) out_.bytes(column.view());
  packable_bytes_ = out_.size() - column(Column::kWhole).size();
  return out_.view();
}

void BlockEncoder::clear() {
  for (ColumnWriter& column : columns_) column.clear();
  memory_.clear();
  ++block_;
  shapes_ = 0;
  size_ = 0;
  lines_ = 0;
  events_ = 0;
}

}  // namespace areal::record
