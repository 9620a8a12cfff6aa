// Who is where: the nodes of a cluster by role, known to every protocol from the start.
//
// Ranks come in the order of the vocabulary: transfer ranks are inference ranks first, engine by engine, then training
// ranks (transfer_rank(infer) = engine * E + infer_rank, transfer_rank(train) = I + train_rank).
#pragma once
#include <cstdint>
#include <vector>

#include "engine/base/ids.h"

namespace areal::proto {

// Slots of the protocols, by role of the node.
inline constexpr SlotId kGatewaySlot{0};
inline constexpr SlotId kSenderSlot{0};  // Train rank.
inline constexpr SlotId kTrainRankSlot{1};
inline constexpr SlotId kReceiverSlot{0};   // Engine rank.
inline constexpr SlotId kServerSlot{1};     // Engine rank 0 only.
inline constexpr SlotId kTrainLoopSlot{0};  // Controller.
inline constexpr SlotId kPoolSlot{1};
inline constexpr SlotId kPauseGateSlot{2};
inline constexpr SlotId kDrainSlot{3};
inline constexpr SlotId kRouterSlot{0};
inline constexpr SlotId kStoreSlot{0};
inline constexpr SlotId kGuardSlot{0};

struct ClusterMap {
  std::vector<NodeId> trainers;           // By train_rank.
  std::vector<NodeId> engine_ranks;       // Engine-major: engine * engine_world + infer_rank.
  std::uint32_t engines = 0;              // N.
  std::uint32_t engine_world = 0;         // E = tp * pp.
  std::vector<std::uint32_t> data_heads;  // Train ranks that fetch shards: the first of each data-parallel rank.
  NodeId gateway;
  NodeId controller;
  NodeId router;
  NodeId store;
  std::vector<NodeId> guards;  // One a host.
  NodeId master_guard;         // Of the host of transfer rank 0.

  [[nodiscard]] std::uint32_t infer_world() const { return static_cast<std::uint32_t>(engine_ranks.size()); }
  [[nodiscard]] std::uint32_t train_world() const { return static_cast<std::uint32_t>(trainers.size()); }
  [[nodiscard]] std::uint32_t world() const { return infer_world() + train_world(); }
  [[nodiscard]] NodeId server(EngineId engine) const { return engine_ranks[engine.value * engine_world]; }
  // REQUIRES: rank < world().
  [[nodiscard]] NodeId node_of_transfer_rank(std::uint32_t rank) const {
    return rank < infer_world() ? engine_ranks[rank] : trainers[rank - infer_world()];
  }
};

}  // namespace areal::proto
