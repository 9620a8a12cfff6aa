#include "sim/world/sim_ports.h"

#include <algorithm>

namespace areal::sim {
namespace {

// Times of things that are quick and local; far below any time a scenario sets.
constexpr Duration kMemoryTime = 20_us;
constexpr Duration kStoreTime = 2_ms;
constexpr Duration kStopTime = 10_ms;

}  // namespace

void SimPorts::defer(const port::Passing& passing, const node::Origin& origin) {
  const node::Node& target = world_.node(passing.node);
  world_.post(passing.delay, WorldEvent{.what = WorldEvent::What::kPassed,
                                        .node = passing.node,
                                        .incarnation = target.incarnation(),
                                        .slot = passing.slot,
                                        .origin = origin,
                                        .is_input = passing.is_input,
                                        .rule = passing.rule,
                                        .erased = {passing.record, passing.body}});
}

void SimPorts::on_event(const port::TraceEvent& event) {
  sink_.on_event(event);
  world_.after_event(event, sink_);
}

void SimPorts::arm(SlotId slot, const port::ArmTimer& effect) {
  disarm(slot, port::DisarmTimer{effect.timer});
  const std::uint64_t number =
      world_.post(effect.after, WorldEvent{.what = WorldEvent::What::kTimer,
                                           .node = node_,
                                           .incarnation = world_.node(node_).incarnation(),
                                           .slot = slot,
                                           .origin = origin_,
                                           .number = effect.timer.value,
                                           .erased = proto::erase(proto::Input(port::TimerFired{effect.timer}))});
  world_.timers_[node_.value - 1].insert({slot, effect.timer}, number);
}

void SimPorts::disarm(SlotId slot, const port::DisarmTimer& effect) {
  auto& timers = world_.timers_[node_.value - 1];
  const World::TimerKey key{slot, effect.timer};
  if (const std::uint64_t* event = timers.find(key)) {
    world_.queue_.cancel(*event);
    timers.erase(key);
  }
}

void SimPorts::tell(SlotId from, const port::Tell& effect) {
  world_.post_input(node_, effect.to_slot, port::TellIn{from, effect.body}, origin_, {});
}

void SimPorts::release(SlotId slot, const port::ReleaseBuffer& effect) {
  std::erase_if(world_.devices_[node_.value - 1].buffers,
                [&](const SimBuffer& buffer) { return buffer.id == effect.buffer; });
  world_.post_input(node_, slot, port::BufferReleased{effect.buffer}, origin_, kMemoryTime);
}

void SimPorts::used(SlotId slot, const port::QueryMemory& effect) {
  const std::uint64_t bytes = world_.devices_[node_.value - 1].used(effect.tag);
  world_.post_input(node_, slot, port::MemoryUsed{effect.op, bytes}, origin_, kMemoryTime);
}

void SimPorts::get(SlotId slot, const port::StoreGet& effect) {
  const World::StoreValue* found = world_.store_.find(effect.key);
  const port::Outcome outcome = found != nullptr ? port::Outcome::kOk : port::Outcome::kRefused;
  const Digest128 value = found != nullptr ? found->value : Digest128{};
  world_.post_input(node_, slot, port::StoreDone{effect.op, outcome, value}, origin_, kStoreTime);
}

void SimPorts::release_port(SlotId /*slot*/, const port::ReleasePort& effect) {
  world_.hosts_[host().value].release(effect.port);
}

// No process of this room has another number; a rewritten effect may.
bool SimPorts::is_node(NodeId node) const { return node.value >= 1 && node.value <= world_.room_->nodes.size(); }

void SimPorts::start(SlotId slot, const port::StartProcess& effect) {
  if (!is_node(effect.node)) {
    world_.post_input(node_, slot, port::ProcessStarted{effect.op, effect.node, 0, port::Outcome::kRefused}, origin_,
                      {});
    return;
  }
  world_.post(world_.room_->scenario.devices.start_time, WorldEvent{.what = WorldEvent::What::kProcessUp,
                                                                    .node = effect.node,
                                                                    .slot = slot,
                                                                    .origin = origin_,
                                                                    .number = effect.op.value,
                                                                    .a = effect.port,
                                                                    .b = node_.value,
                                                                    .c = world_.node(node_).incarnation(),
                                                                    .erased = {}});
}

void SimPorts::stop(SlotId /*slot*/, const port::StopProcess& effect) {
  if (!is_node(effect.node)) return;
  world_.post(kStopTime, WorldEvent{.what = WorldEvent::What::kStop,
                                    .node = effect.node,
                                    .incarnation = world_.node(effect.node).incarnation(),
                                    .origin = origin_,
                                    .number = 0,
                                    .erased = {}});
}

}  // namespace areal::sim
