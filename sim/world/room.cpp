#include "sim/world/room.h"

#include <utility>

#include "sim/fault/fault_kinds.h"

namespace areal::sim {

JudgeSetup judge_setup_of(const node::RoomPlan& room) {
  JudgeSetup setup;
  setup.pause = room.scenario.rollout.pause;
  setup.pause_around_update = room.scenario.work.pause_around_update;
  setup.batch_size = room.scenario.rollout.batch;
  setup.max_staleness = room.scenario.rollout.staleness;
  setup.enforce_staleness = room.scenario.rollout.enforce_staleness;
  setup.delta = room.scenario.train.delta.enabled;
  setup.anchor_interval = static_cast<std::uint32_t>(room.scenario.train.delta.anchor_interval);
  for (const RoomNode& node : room.nodes) {
    JudgeNode judged;
    judged.id = node.id;
    judged.name = node.name;
    judged.role = node.role;
    judged.engine = node.engine;
    judged.host = node.host;
    if (node.role == port::Role::kEngine) judged.infer_rank = node.transfer_rank;
    if (node.role == port::Role::kTrainer) judged.train_rank = node.train_rank;
    setup.nodes.push_back(std::move(judged));
  }
  return setup;
}

NodeDirectory directory_of(const node::RoomPlan& room) {
  NodeDirectory directory;
  directory.resize(room.nodes.size() + 1);
  for (const RoomNode& node : room.nodes) directory[node.id.value] = {node.name, slot_names(room, node), node.role};
  return directory;
}

std::vector<node::Node> build_nodes(const Room& room) {
  std::vector<node::Node> nodes;
  for (const RoomNode& node : room.nodes) nodes.emplace_back(node.id, node.name, protocols_of(room, node));
  return nodes;
}

Result<std::shared_ptr<const Room>> build_room(const config::Scenario& scenario, const RoomPolicies& policies) {
  Result<node::RoomPlan> plan = node::plan_room(scenario, policies);
  if (!plan) return std::move(plan).error();
  Room room{std::move(plan).value(), {}, {}, {}};
  node::add_room_kinds(room.kinds);
  add_fault_kinds(room.kinds);
  room.directory = directory_of(room);
  room.setup = std::make_shared<const JudgeSetup>(judge_setup_of(room));
  return std::shared_ptr<const Room>(std::make_shared<const Room>(std::move(room)));
}

}  // namespace areal::sim
