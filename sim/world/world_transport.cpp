// Control messages over links: delay, loss, doubling and partitions.
#include "sim/world/world.h"

namespace areal::sim {

// Uniform over the scenario's range, in steps of a microsecond.
Duration World::latency(NodeId from, NodeId to, port::TraceSink& sink) {
  const config::DurationRange& range = room_->scenario.links.latency;
  const std::int64_t steps = (range.most.ns - range.least.ns) / 1'000 + 1;
  const std::uint64_t drawn = decisions_.draw_below({"net.delay", from, to}, static_cast<std::uint64_t>(steps), sink);
  return range.least + Duration{static_cast<std::int64_t>(drawn) * 1'000};
}

void World::send(NodeId from, SlotId from_slot, const port::Send& message, const node::Origin& origin,
                 port::TraceSink& sink) {
  if (message.to.value == 0 || message.to.value > nodes_.size()) return;
  const MessageFate fate =
      faults_.message_fate({from, message.to, message.kind, message.body.kind}, {now_, decisions_, sink});
  if (fate.lost) return;
  const port::MessageIn arriving{from,        node_of(from).incarnation(), from_slot, message.kind, message.request,
                                 message.body};
  for (std::uint32_t copy = 0; copy < fate.copies; ++copy) {
    const Duration delay = latency(from, message.to, sink) + fate.late;
    post_input(message.to, message.to_slot, arriving, origin, delay, false);
  }
}

}  // namespace areal::sim
