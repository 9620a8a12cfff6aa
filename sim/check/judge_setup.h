// The static facts that a judge may know besides the trace: who is who, and what the scenario promised.
//
// Made once before a run and never changed, so that copies of judges share it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/port/notes.h"

namespace areal::sim {

inline constexpr std::uint32_t kNoRank = UINT32_MAX;

struct JudgeNode {
  NodeId id;
  std::string name;
  port::Role role = port::Role::kTrainer;
  EngineId engine;                     // Of an engine's rank.
  std::uint32_t infer_rank = kNoRank;  // Transfer rank of an engine's rank, counted over all engines: 0 to I-1.
  std::uint32_t train_rank = kNoRank;  // Of a trainer: 0 to T-1; its transfer rank is I + train_rank.
  HostId host;
};

struct JudgeSetup {
  std::vector<JudgeNode> nodes;
  port::PauseMode pause = port::PauseMode::kAbortResubmit;
  bool pause_around_update = true;
  std::uint32_t batch_size = 1;
  std::uint32_t max_staleness = 0;
  bool enforce_staleness = false;
  bool delta = false;                 // Updates send what changed where they can.
  std::uint32_t anchor_interval = 0;  // Deltas between two full updates at most; 0: any number.

  // Null if the node is not declared.
  [[nodiscard]] const JudgeNode* find(NodeId id) const;
  // "infer-3", or "node 17" if it is not declared.
  [[nodiscard]] std::string name_of(NodeId id) const;
  [[nodiscard]] std::uint32_t trainers() const;     // T: nodes with a train rank.
  [[nodiscard]] std::uint32_t infer_ranks() const;  // I: nodes with an infer rank.
  [[nodiscard]] std::uint32_t engines() const;      // E: one more than the greatest engine id.
  // Nodes of one engine in order of rank.
  [[nodiscard]] std::vector<NodeId> ranks_of(EngineId engine) const;
};

using SetupPtr = std::shared_ptr<const JudgeSetup>;

}  // namespace areal::sim
