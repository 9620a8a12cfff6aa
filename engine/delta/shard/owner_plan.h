// Which optimizer shard sends which part of which rollout shard: the owner slices of a transfer plan.
//
// For a delta that optimizer shards find alone, the plan's senders (whole copies) are the wrong ones: each element must
// come from the one shard that owns its state. An owner slice says that elements of `send`'s owned range which lie in a
// box of a checkpoint tensor go to `recv`, and where that box lies in its shard. Together the slices reach every
// element of every rollout shard once; a slice in whose box the owner has nothing after all stays empty. Neighbours
// that hold equal pieces, and copies of whole shardings, take turns as replicas of the plan do, round robin.
//
// An engine's own name that is an alias (a tied head) gets slices of its source where the rank does not hold the source
// itself: on the last of several pipeline stages. Where it does, both names are one storage.
//
// Deterministic; order on the wire: by sender, receiver, then name. Pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/delta/shard/core_layout.h"
#include "engine/proto/name_policy.h"
#include "engine/proto/transfer_plan.h"

namespace areal::delta {

struct OwnerSlice {
  std::uint32_t core = 0;   // Index into CoreLayout::tensors.
  std::uint32_t part = 0;   // Index into its parts.
  std::uint32_t piece = 0;  // Tensor piece.
  std::uint32_t owner = 0;
  std::uint32_t target = 0;  // Index into the engines' parameters.
  proto::TransferRank send = 0;
  proto::TransferRank recv = 0;
  DType storage = DType::kBf16;
  DType wire = DType::kBf16;
  // The box in the whole checkpoint tensor, and the rollout shard that it lies in.
  proto::Offsets begin{};
  proto::Offsets end{};
  proto::Offsets shard_offset{};
  proto::Shape shard;
};

struct OwnerOptions {
  proto::PlanWorld world;
  std::optional<std::uint32_t> only_rank = std::nullopt;  // Keep only what this transfer rank sends or receives.
};

// `infer` is one engine. Refuses what a transfer plan of the same names refuses, among it tensors that are not of one
// size on both sides, layouts larger than the world, and rollout shards of 2^31 elements and more, whose indices do not
// fit the wire (GAP-10).
Result<std::vector<OwnerSlice>> owner_slices(const CoreLayout& layout, const proto::GridSet& infer,
                                             const OwnerOptions& options, const proto::NamePolicy& policy);

// The slices of one sender to one receiver. REQUIRES: slices are in wire order.
std::span<const OwnerSlice> slices_between(std::span<const OwnerSlice> slices, std::uint32_t send, std::uint32_t recv);

}  // namespace areal::delta
