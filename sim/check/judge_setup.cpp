// Looks up the static facts of a run.
#include "sim/check/judge_setup.h"

#include <algorithm>

namespace areal::sim {

const JudgeNode* JudgeSetup::find(NodeId id) const {
  // Nodes are usually declared in the order of their ids, counted from 1.
  if (id.value >= 1 && id.value <= nodes.size() && nodes[id.value - 1].id == id) return &nodes[id.value - 1];
  const auto place = std::ranges::find(nodes, id, &JudgeNode::id);
  return place == nodes.end() ? nullptr : &*place;
}

std::string JudgeSetup::name_of(NodeId id) const {
  const JudgeNode* node = find(id);
  return node != nullptr ? node->name : "node " + std::to_string(id.value);
}

std::uint32_t JudgeSetup::trainers() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(nodes, [](const JudgeNode& node) { return node.train_rank != kNoRank; }));
}

std::uint32_t JudgeSetup::infer_ranks() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(nodes, [](const JudgeNode& node) { return node.infer_rank != kNoRank; }));
}

std::uint32_t JudgeSetup::engines() const {
  std::uint64_t count = 0;
  for (const JudgeNode& node : nodes) {
    if (node.infer_rank != kNoRank) count = std::max(count, node.engine.value + 1);
  }
  return static_cast<std::uint32_t>(count);
}

std::vector<NodeId> JudgeSetup::ranks_of(EngineId engine) const {
  std::vector<const JudgeNode*> found;
  for (const JudgeNode& node : nodes) {
    if (node.infer_rank == kNoRank || node.engine != engine) continue;
    found.insert(std::ranges::upper_bound(found, node.infer_rank, {}, &JudgeNode::infer_rank), &node);
  }
  std::vector<NodeId> ids;
  for (const JudgeNode* node : found) ids.push_back(node->id);
  return ids;
}

}  // namespace areal::sim
