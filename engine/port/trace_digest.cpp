#include "engine/port/trace_digest.h"

namespace areal::port {

namespace {

// What kind of line the words come from, so that no two kinds can have equal words.
enum class LineTag : std::uint8_t { kEvent = 1, kState, kStream, kDecision };

}  // namespace

void TraceWords::add(const Record& record) {
  add(record.kind | (std::uint64_t{record.size} << 16));
  for (const std::uint64_t word : record.view()) add(word);
}

TraceWords::TraceWords(const TraceEvent& event) {
  add(static_cast<std::uint64_t>(LineTag::kEvent));
  add(event.seq);
  add(event.cause);
  add(event.lamport);
  add(to_word(event.at));
  add(event.node.value);
  add(event.incarnation);
  add(event.slot.value);
  add(to_word(event.what));
  add(event.rule);
  add(event.record);
  add(event.body);
}

TraceWords::TraceWords(NodeId node, SlotId slot, const Digest128& state) {
  add(static_cast<std::uint64_t>(LineTag::kState));
  add(node.value);
  add(slot.value);
  add(state.high);
  add(state.low);
}

TraceWords::TraceWords(std::uint32_t stream, std::string_view name) {
  const Digest128 text = hash_text(name);
  add(static_cast<std::uint64_t>(LineTag::kStream));
  add(stream);
  add(text.high);
  add(text.low);
}

TraceWords::TraceWords(const Decision& decision) {
  add(static_cast<std::uint64_t>(LineTag::kDecision));
  add(decision.stream);
  add(decision.ordinal);
  add(decision.bound);
  add(decision.chosen);
}

}  // namespace areal::port
