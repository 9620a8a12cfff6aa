#include "engine/port/trace_words.h"

#include <algorithm>

#include "engine/base/digest.h"

namespace areal::port {

namespace {

// The first word of a line has its tag in the lowest byte.
constexpr int kWhatShift = 8;
constexpr int kRecordSizeShift = 16;
constexpr int kBodySizeShift = 24;
constexpr int kRecordKindShift = 32;
constexpr int kBodyKindShift = 48;
constexpr int kUpperShift = 32;  // Of a stream's number; and of the rule behind the incarnation.

std::uint64_t tag_word(LineTag tag) { return static_cast<std::uint64_t>(tag); }

std::uint64_t low_half(std::uint64_t word) { return word & 0xFFFF'FFFF; }

const std::uint64_t* read_record(const std::uint64_t* in, std::uint64_t kind, std::uint64_t size, Record& record) {
  record.kind = static_cast<KindId>(kind);
  record.size = static_cast<std::uint8_t>(size);
  std::copy_n(in, record.size, record.words.data());
  return in + record.size;
}

}  // namespace

std::uint64_t* write_words(const TraceEvent& event, std::uint64_t* out) {
  *out++ = tag_word(LineTag::kEvent) | to_word(event.what) << kWhatShift |
           std::uint64_t{event.record.size} << kRecordSizeShift | std::uint64_t{event.body.size} << kBodySizeShift |
           std::uint64_t{event.record.kind} << kRecordKindShift | std::uint64_t{event.body.kind} << kBodyKindShift;
  *out++ = event.incarnation | std::uint64_t{event.rule} << kUpperShift;
  *out++ = event.seq;
  *out++ = event.cause;
  *out++ = event.lamport;
  *out++ = to_word(event.at);
  *out++ = event.node.value;
  *out++ = event.slot.value;
  out = std::copy_n(event.record.words.data(), event.record.size, out);
  return std::copy_n(event.body.words.data(), event.body.size, out);
}

std::uint64_t* write_words(NodeId node, SlotId slot, const Digest128& state, std::uint64_t* out) {
  *out++ = tag_word(LineTag::kState);
  *out++ = node.value;
  *out++ = slot.value;
  *out++ = state.high;
  *out++ = state.low;
  return out;
}

std::uint64_t* write_words(std::uint32_t stream, std::string_view name, std::uint64_t* out) {
  const Digest128 text = hash_text(name);
  *out++ = tag_word(LineTag::kStream) | std::uint64_t{stream} << kUpperShift;
  *out++ = text.high;
  *out++ = text.low;
  return out;
}

std::uint64_t* write_words(const Decision& decision, std::uint64_t* out) {
  *out++ = tag_word(LineTag::kDecision) | std::uint64_t{decision.stream} << kUpperShift;
  *out++ = decision.ordinal;
  *out++ = decision.bound;
  *out++ = decision.chosen;
  return out;
}

void read_words(const std::uint64_t* in, TraceEvent& event) {
  const std::uint64_t head = *in++;
  event.what = static_cast<TraceWhat>(head >> kWhatShift & 0xFF);
  event.incarnation = static_cast<Incarnation>(low_half(*in));
  event.rule = static_cast<std::uint32_t>(*in++ >> kUpperShift);
  event.seq = *in++;
  event.cause = *in++;
  event.lamport = *in++;
  event.at = from_word<Instant>(*in++);
  event.node.value = *in++;
  event.slot.value = *in++;
  in = read_record(in, head >> kRecordKindShift & 0xFFFF, head >> kRecordSizeShift & 0xFF, event.record);
  read_record(in, head >> kBodyKindShift, head >> kBodySizeShift & 0xFF, event.body);
}

void read_words(const std::uint64_t* in, NodeId& node, SlotId& slot, Digest128& state) {
  node.value = in[1];
  slot.value = in[2];
  state = {.high = in[3], .low = in[4]};
}

void read_words(const std::uint64_t* in, std::uint32_t& stream) {
  stream = static_cast<std::uint32_t>(*in >> kUpperShift);
}

void read_words(const std::uint64_t* in, Decision& decision) {
  decision.stream = static_cast<std::uint32_t>(*in >> kUpperShift);
  decision.ordinal = in[1];
  decision.bound = in[2];
  decision.chosen = in[3];
}

LineTag tag_of(std::uint64_t first_word) { return static_cast<LineTag>(first_word & 0xFF); }

std::size_t words_in_line(std::uint64_t first_word) {
  switch (tag_of(first_word)) {
    case LineTag::kEvent:
      return 8 + (first_word >> kRecordSizeShift & 0xFF) + (first_word >> kBodySizeShift & 0xFF);
    case LineTag::kState:
      return 5;
    case LineTag::kStream:
      return 3;
    case LineTag::kDecision:
      return 4;
  }
  return 0;
}

}  // namespace areal::port
