#include "sim/world/world.h"

#include <algorithm>

#include "engine/base/rng.h"
#include "engine/proto/training_group.h"
#include "sim/world/sim_ports.h"

namespace areal::sim {
namespace {

using What = WorldEvent::What;

// From the death of a process to its starter's knowing.
constexpr Duration kExitNotice = 50_ms;

}  // namespace

Result<World> World::make(std::shared_ptr<const Room> room, std::uint64_t seed, Profile profile,
                          std::vector<config::RuleSpec> extra_rules) {
  std::vector<node::Node> nodes = build_nodes(*room);
  return make_hosting(std::move(room), seed, profile, std::move(extra_rules), std::move(nodes));
}

Result<World> World::make_hosting(std::shared_ptr<const Room> room, std::uint64_t seed, Profile profile,
                                  std::vector<config::RuleSpec> extra_rules, std::vector<node::Node> nodes) {
  AREAL_CHECK(nodes.size() == room->nodes.size());
  World world;
  const config::Scenario& scenario = room->scenario;
  std::vector<config::RuleSpec> rules = std::move(extra_rules);
  rules.insert(rules.end(), scenario.rules.begin(), scenario.rules.end());
  auto hook = RuleHook::make(rules, room->kinds, room->directory);
  if (!hook) return hook.error();
  auto plan = FaultPlan::make(scenario.faults, scenario.budget, profile, room->kinds, room->directory);
  if (!plan) return plan.error();
  world.rules_ = std::move(*hook);
  world.faults_ = std::move(*plan);
  world.decisions_ = Decisions(seed);
  const std::size_t count = room->nodes.size();
  world.incarnations_.assign(count, 0);
  world.starter_slots_.assign(count, {});
  world.hung_until_.assign(count, {});
  world.timers_.resize(count);
  world.devices_.resize(count);
  for (SimDevice& device : world.devices_) device.capacity = scenario.devices.memory;
  world.hosts_.resize(room->hosts);
  const std::uint32_t infer_world = room->cluster.infer_world();
  world.link_free_.assign(room->cluster.world(), {});
  world.engines_.resize(room->cluster.engines);
  for (std::uint32_t rank = 0; rank < room->cluster.train_world(); ++rank) {
    world.trainers_.emplace_back(room->tiny, rank);
  }
  for (std::uint32_t rank = 0; rank < infer_world; ++rank) {
    world.replicas_.emplace_back(node::TinyReplica(room->tiny, rank / room->cluster.engine_world,
                                                   rank % room->cluster.engine_world, room->policies.aliases));
  }
  world.checkpoints_.resize(room->cluster.train_world());
  world.nodes_ = std::move(nodes);
  world.room_ = std::move(room);
  return world;
}

void World::start(port::TraceSink& sink) {
  faults_.start({now_, decisions_, sink});
  for (const RoomNode& node : room_->nodes) {
    if (node.starter.value == 0) start_process(node.id, 0, {}, sink);
  }
}

void World::step(port::TraceSink& sink) {
  const auto due = faults_.next_timed();
  if (due && *due <= queue_.next_time()) {
    now_ = std::max(now_, *due);
    faults_.fire_timed({now_, decisions_, sink}, due_);
  } else {
    auto next = queue_.pop();
    now_ = next.at;
    happen(next.event, sink);
  }
  report_faults(sink);
}

// Carries out what the plan asked for within the event, and says so in the trace.
void World::report_faults(port::TraceSink& sink) {
  while (!due_.empty() || faults_.has_notices()) {
    for (const FaultNotice& notice : faults_.take_notices()) {
      sink.on_event(fault_event(notice, ++seq_, 0, now_));
    }
    for (const FaultAction& action : std::exchange(due_, {})) act(action, sink);
  }
}

void World::act(const FaultAction& action, port::TraceSink& sink) {
  switch (action.act) {
    case FaultAct::kKill:
      kill_process(action.node, sink);
      break;
    case FaultAct::kHang:
      hung_until_[action.node.value - 1] = std::max(hung_until_[action.node.value - 1], action.until);
      break;
  }
}

void World::heal(port::TraceSink& sink) {
  faults_.heal({now_, decisions_, sink});
  report_faults(sink);
}

void World::happen(const WorldEvent& event, port::TraceSink& sink) {
  switch (event.what) {
    case What::kTimer:
      fire_timer(event, sink);
      break;
    case What::kDeliver:
    case What::kPassed:
      deliver(event, sink);
      break;
    case What::kProcessUp:
      if (node_of(NodeId{event.b}).alive() && node_of(NodeId{event.b}).incarnation() == event.c) {
        process_up(event, sink);
      }
      break;
    case What::kExitNoticed:
      deliver(event, sink);
      break;
    case What::kDeathNoticed:
      death_noticed(event);
      break;
    case What::kPairMoved:
      pair_moved(event, sink);
      break;
    case What::kComputeEnds:
      compute_ends(event, sink);
      break;
    case What::kStop:
      if (node_of(event.node).incarnation() == event.incarnation) kill_process(event.node, sink);
      break;
  }
}

// At a node that hangs a timer stays armed until it goes on: what it does first may still disarm it.
void World::fire_timer(const WorldEvent& event, port::TraceSink& sink) {
  auto& timers = timers_[event.node.value - 1];
  const TimerKey key{event.slot, TimerId{event.number}};
  const Instant hung_until = hung_until_[event.node.value - 1];
  if (hung_until <= now_) {
    timers.erase(key);
    deliver(event, sink);
  } else if (std::uint64_t* number = timers.find(key)) {
    *number = queue_.post(hung_until, event);
  }
}

void World::deliver(const WorldEvent& event, port::TraceSink& sink) {
  node::Node& node = node_of(event.node);
  if (!node.alive()) return;
  if (event.incarnation != 0 && event.incarnation != node.incarnation()) return;
  if (hung_until_[event.node.value - 1] > now_) {
    queue_.post(hung_until_[event.node.value - 1], event);
    return;
  }
  SimPorts ports(*this, event.node, sink);
  if (event.what == What::kPassed) {
    node.run_passed({.node = event.node,
                     .slot = event.slot,
                     .is_input = event.is_input,
                     .rule = event.rule,
                     .record = event.erased.record,
                     .body = event.erased.body},
                    event.origin, ports);
    return;
  }
  const auto input = proto::input_of(event.erased);
  if (input && event.slot.value < node.slots().size()) node.step({event.slot, *input, event.origin}, ports);
}

void World::post_input(NodeId node, SlotId slot, const proto::Input& input, const node::Origin& origin, Duration after,
                       bool to_this_process) {
  post(after, WorldEvent{.what = What::kDeliver,
                         .node = node,
                         .incarnation = to_this_process ? node_of(node).incarnation() : 0,
                         .slot = slot,
                         .origin = origin,
                         .erased = proto::erase(input)});
}

void World::after_event(const port::TraceEvent& event, port::TraceSink& sink) {
  if (event.record.kind == port::Note::kKind && event.body.kind == port::RunEnded::kKind) {
    dispatch_record<port::RunEnded>(event.body, [&](const port::RunEnded& ended) { ended_ = ended; });
  }
  faults_.on_event(event, {now_, decisions_, sink}, due_);
}

void World::start_process(NodeId id, std::uint16_t port, const node::Origin& origin, port::TraceSink& sink) {
  const Incarnation incarnation = ++incarnations_[id.value - 1];
  node::Node& node = node_of(id);
  node.start(incarnation);
  hung_until_[id.value - 1] = {};
  const std::uint64_t word = mix_words(mix_words(decisions_.seed(), id.value), incarnation);
  SimPorts ports(*this, id, sink);
  for (std::uint64_t slot = 0; slot < node.slots().size(); ++slot) {
    const port::Started started{incarnation, port, mix_words(word, slot)};
    node.step({SlotId{slot}, started, origin}, ports);
  }
}

void World::process_up(const WorldEvent& event, port::TraceSink& sink) {
  const auto outcome = node_of(event.node).alive() ? port::Outcome::kRefused : port::Outcome::kOk;
  if (outcome == port::Outcome::kOk) {
    starter_slots_[event.node.value - 1] = event.slot;
    start_process(event.node, static_cast<std::uint16_t>(event.a), event.origin, sink);
  }
  const port::ProcessStarted started{OpId{event.number}, event.node, incarnations_[event.node.value - 1], outcome};
  post_input(NodeId{event.b}, event.slot, started, event.origin, {});
}

void World::kill_process(NodeId id, port::TraceSink& sink) {
  node::Node& node = node_of(id);
  if (!node.alive()) return;
  const Incarnation incarnation = node.incarnation();
  node.end();
  faults_.node_down(id);
  for (const auto& timer : std::exchange(timers_[id.value - 1], {})) queue_.cancel(timer.value);
  for (const SimCompute& compute : devices_[id.value - 1].running) queue_.cancel(compute.event);
  devices_[id.value - 1].clear();
  const RoomNode& place = room_->node(id);
  if (place.role == port::Role::kEngine) engine_lost_rank(place.engine);
  member_died(id);
  if (place.starter.value != 0 && node_of(place.starter).alive()) {
    post(kExitNotice, WorldEvent{.what = What::kExitNoticed,
                                 .node = place.starter,
                                 .incarnation = node_of(place.starter).incarnation(),
                                 .slot = starter_slots_[id.value - 1],
                                 .erased = proto::erase(proto::Input(port::ProcessExited{id, incarnation, 137}))});
  }
  report_faults(sink);
}

std::vector<RoomWait> World::waits() const {
  std::vector<RoomWait> waits;
  proto::WaitList list;
  for (const node::Node& node : nodes_) {
    if (!node.alive()) continue;
    for (const node::ProtocolBox& slot : node.slots()) {
      list.clear();
      slot.list_waits(list);
      for (const proto::Wait& wait : list) {
        std::string what = std::string(slot.name()) + " waits for " + std::string(wait.what);
        waits.push_back({node.id(), wait.on, what + " (" + std::to_string(wait.detail) + ")"});
      }
    }
  }
  list_group_waits(waits);
  return waits;
}

std::vector<std::string> World::leaks() const {
  std::vector<std::string> leaks;
  for (const RoomNode& node : room_->nodes) {
    const std::uint64_t staging = devices_[node.id.value - 1].used(port::MemoryTag::kStaging);
    if (staging > 0)
      leaks.push_back(node.name + " still holds " + std::to_string(staging) + " bytes of staging memory");
  }
  for (const Group& group : groups_.all()) {
    // The world of training lasts as long as its processes.
    if (proto::is_training_group(group.id)) continue;
    const bool open =
        std::ranges::any_of(group.members, [](const GroupMember& member) { return !member.dead && !member.left; });
    if (open && !group.aborted) leaks.push_back("group " + std::to_string(group.id.value) + " still has members");
  }
  return leaks;
}

std::vector<std::string> World::audit() const {
  std::vector<std::string> wrong;
  for (const node::Node& node : nodes_) {
    for (const node::ProtocolBox& slot : node.slots()) {
      if (slot.digest() == slot.audited_digest()) continue;
      wrong.push_back("the running digest of " + std::string(slot.name()) + " at " + node.name() + " is wrong");
    }
  }
  return wrong;
}

void World::save(StateWriter& writer) const {
  writer.value(now_);
  writer.value(seq_);
  writer.value(numbers_);
  queue_.save(writer);
  decisions_.save(writer);
  for (const node::Node& node : nodes_) node.save(writer);
  writer.value(incarnations_);
  writer.value(starter_slots_);
  writer.value(hung_until_);
  for (const auto& timers : timers_) {
    writer.value(static_cast<std::uint64_t>(timers.size()));
    for (const auto& timer : timers) writer.value(timer.key), writer.value(timer.value);
  }
  writer.value(devices_);
  writer.value(link_free_);
  writer.value(hosts_);
  writer.value(groups_);
  writer.value(engines_);
  writer.value(store_);
  for (const node::TinyTrainRank& trainer : trainers_) trainer.save(writer);
  for (const node::TinyEngineRank& replica : replicas_) replica.save(writer);
  writer.value(checkpoints_);
  rules_.save(writer);
  faults_.save(writer);
  writer.value(ended_);
}

}  // namespace areal::sim
