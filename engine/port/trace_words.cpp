#include "engine/port/trace_words.h"

#include <algorithm>

#include "engine/base/digest.h"

namespace areal::port {

namespace {

constexpr int kSizeShift = 16;

std::uint64_t* write_record(const Record& record, std::uint64_t* out) {
  *out++ = record.kind | (std::uint64_t{record.size} << kSizeShift);
  return std::copy_n(record.words.data(), record.size, out);
}

const std::uint64_t* read_record(const std::uint64_t* in, Record& record) {
  record.kind = static_cast<KindId>(*in);
  record.size = static_cast<std::uint8_t>(*in++ >> kSizeShift);
  std::copy_n(in, record.size, record.words.data());
  return in + record.size;
}

std::uint64_t tag_word(LineTag tag) { return static_cast<std::uint64_t>(tag); }

}  // namespace

std::uint64_t* write_words(const TraceEvent& event, std::uint64_t* out) {
  *out++ = tag_word(LineTag::kEvent);
  *out++ = event.seq;
  *out++ = event.cause;
  *out++ = event.lamport;
  *out++ = to_word(event.at);
  *out++ = event.node.value;
  *out++ = event.incarnation;
  *out++ = event.slot.value;
  *out++ = to_word(event.what);
  *out++ = event.rule;
  out = write_record(event.record, out);
  return write_record(event.body, out);
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
  *out++ = tag_word(LineTag::kStream);
  *out++ = stream;
  *out++ = text.high;
  *out++ = text.low;
  return out;
}

std::uint64_t* write_words(const Decision& decision, std::uint64_t* out) {
  *out++ = tag_word(LineTag::kDecision);
  *out++ = decision.stream;
  *out++ = decision.ordinal;
  *out++ = decision.bound;
  *out++ = decision.chosen;
  return out;
}

const std::uint64_t* read_words(const std::uint64_t* in, TraceEvent& event) {
  ++in;  // The tag.
  event.seq = *in++;
  event.cause = *in++;
  event.lamport = *in++;
  event.at = from_word<Instant>(*in++);
  event.node.value = *in++;
  event.incarnation = static_cast<Incarnation>(*in++);
  event.slot.value = *in++;
  event.what = static_cast<TraceWhat>(*in++);
  event.rule = static_cast<std::uint32_t>(*in++);
  in = read_record(in, event.record);
  return read_record(in, event.body);
}

const std::uint64_t* read_words(const std::uint64_t* in, NodeId& node, SlotId& slot, Digest128& state) {
  ++in;
  node.value = *in++;
  slot.value = *in++;
  state.high = *in++;
  state.low = *in++;
  return in;
}

const std::uint64_t* read_words(const std::uint64_t* in, std::uint32_t& stream) {
  stream = static_cast<std::uint32_t>(in[1]);
  return in + 4;
}

const std::uint64_t* read_words(const std::uint64_t* in, Decision& decision) {
  ++in;
  decision.stream = static_cast<std::uint32_t>(*in++);
  decision.ordinal = *in++;
  decision.bound = *in++;
  decision.chosen = *in++;
  return in;
}

}  // namespace areal::port
