// Which part of which tensor goes from which rank to which, in the order of the wire.
//
// Ranks are transfer ranks: inference first (engine * instance + rank), then training (inference world + rank). A plan
// is computed on every rank from equal metas and never sent; its order IS the protocol, no tags travel. Which training
// replica serves which inference replica is a rule (replica_choice.h). The sender casts from storage to the wire dtype,
// which is the receiver's: bytes = elements * size of the wire dtype.
//
// Immutable once built and shared by pointer; safe to share between threads.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/dtype.h"
#include "engine/base/result.h"
#include "engine/proto/name_policy.h"
#include "engine/proto/replica_choice.h"
#include "engine/proto/shard_meta.h"

namespace areal::proto {

using TransferRank = std::uint16_t;

struct PlanWorld {
  std::uint32_t infer_world = 0;  // All engines together.
  std::uint32_t train_world = 0;
  std::uint32_t engines = 1;

  [[nodiscard]] constexpr std::uint32_t world() const { return infer_world + train_world; }
  // Ranks of one engine. REQUIRES: engines > 0.
  [[nodiscard]] constexpr std::uint32_t instance() const { return infer_world / engines; }
  [[nodiscard]] constexpr std::uint32_t infer_rank(std::uint32_t global_rank, std::uint32_t engine) const {
    return engine * instance() + global_rank;
  }
  [[nodiscard]] constexpr std::uint32_t train_rank(std::uint32_t global_rank) const {
    return infer_world + global_rank;
  }
  [[nodiscard]] constexpr bool is_training(std::uint32_t transfer_rank) const { return transfer_rank >= infer_world; }
};

// Refuses no engines, engines of unequal size, and more ranks than a TransferRank can number.
Status check_world(const PlanWorld& world);

// A box of elements, relative to the sender's and to the receiver's shard.
struct Region {
  Offsets send_offset{};
  Offsets recv_offset{};
  Shape extent;
  constexpr bool operator==(const Region&) const = default;
};

struct PlanTensor {
  std::uint32_t train_name = 0;  // Index into the training side's names.
  std::uint32_t infer_name = 0;  // Index into the inference side's names.
  DType storage = DType::kBf16;
  DType wire = DType::kBf16;
  Digest128 name_digest;  // Of the engine's name.
};

struct PlanOp {
  std::uint32_t tensor = 0;  // Index into TransferPlan::tensors; ascending as engine names are.
  std::uint32_t region = 0;  // Index into TransferPlan::regions; equal boxes share one.
  TransferRank send = 0;
  TransferRank recv = 0;
  DType wire = DType::kBf16;
  DType storage = DType::kBf16;
  std::uint64_t elements = 0;
  std::uint64_t wire_offset = 0;  // In elements, in the stream of this pair and wire dtype.

  [[nodiscard]] constexpr std::uint64_t bytes() const { return elements * size_of(wire); }
};
static_assert(sizeof(PlanOp) == 32);

struct DTypeTotal {
  std::uint32_t ops = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};

// All operations from one rank to one other, in wire order: by name, then offset at the sender, then at the receiver.
struct PeerList {
  TransferRank send = 0;
  TransferRank recv = 0;
  std::uint32_t first_op = 0;
  std::uint32_t op_count = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::array<DTypeTotal, kDTypeCount> by_dtype{};
  Digest128 sequence;  // Rolling hash of (name, wire dtype, elements) of each operation.
};

struct PlanStats {
  std::uint32_t peers = 0;
  std::uint64_t ops = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};

class TransferPlan;

// What one rank sends (a training rank) or receives (an inference rank), peers ascending. A view: the plan outlives it.
class RankPlan {
 public:
  RankPlan(const TransferPlan& plan, std::uint32_t rank, std::span<const std::uint32_t> lists)
      : plan_(&plan), rank_(rank), lists_(lists) {}

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] const TransferPlan& plan() const { return *plan_; }
  [[nodiscard]] bool empty() const { return lists_.empty(); }
  [[nodiscard]] std::size_t peer_count() const { return lists_.size(); }
  [[nodiscard]] const PeerList& list(std::size_t i) const;
  // The other rank of list i.
  [[nodiscard]] TransferRank peer(std::size_t i) const;
  [[nodiscard]] std::span<const PlanOp> ops(std::size_t i) const;
  [[nodiscard]] PlanStats stats() const;
  // Equal on two builds from equal metas: over peers, names, dtypes, offsets and extents. plan_digest.h has that of the
  // whole plan.
  [[nodiscard]] Digest128 stable_hash() const;

 private:
  const TransferPlan* plan_;
  std::uint32_t rank_;
  std::span<const std::uint32_t> lists_;
};

class TransferPlan {
 public:
  PlanWorld world;
  std::shared_ptr<const NameTable> train_names;
  std::shared_ptr<const NameTable> infer_names;
  std::vector<PlanTensor> tensors;
  std::vector<Region> regions;
  std::vector<PlanOp> ops;                 // Grouped by PeerList.
  std::vector<PeerList> lists;             // Ascending by (send, recv).
  std::optional<std::uint32_t> only_rank;  // The plan holds this rank's part alone.

  [[nodiscard]] const std::string& name_of(const PlanTensor& tensor) const { return (*infer_names)[tensor.infer_name]; }
  [[nodiscard]] std::span<const PlanOp> ops_of(const PeerList& list) const {
    return std::span(ops).subspan(list.first_op, list.op_count);
  }
  // Null if nothing goes from `send` to `recv`.
  [[nodiscard]] const PeerList* find(std::uint32_t send, std::uint32_t recv) const;
  // REQUIRES: rank < world.world().
  [[nodiscard]] RankPlan rank(std::uint32_t transfer_rank) const;
  [[nodiscard]] PlanStats stats() const;
  // The wire dtypes that occur, ascending by name; the order of the dtype passes.
  [[nodiscard]] std::vector<DType> wire_dtypes() const;

  // Fills the index behind rank(). Called by the builder when `lists` is complete.
  void index_ranks();

 private:
  std::vector<std::uint32_t> list_order_;  // Indices of `lists`, grouped by rank: receivers first, then senders.
  std::vector<std::uint32_t> rank_start_;  // Into list_order_, one more than ranks.
};

// Operations in the reference's global order: by name, then inference replica, then receiving and sending shard.
struct OperationList {
  std::vector<PlanTensor> tensors;
  std::vector<Region> regions;
  std::vector<PlanOp> ops;
};

struct PlanOptions {
  PlanWorld world;
  bool strict_names = false;
  std::optional<std::uint32_t> only_rank = std::nullopt;  // Keep only what this transfer rank sends or receives.
  // Above so many shards (inference shards * engines + training shards) a plan for one rank skips foreign shards while
  // it is built, instead of afterwards. The result is the same. Source: the reference's threshold.
  std::uint32_t prune_above = 10'000;
  ReplicaRule replicas = ReplicaRule::kRoundRobin;
  // Engine names that stand for other tensors. A rank that holds such a name and not its source in the same box is sent
  // the source's elements: a tied head on the last of several stages. None: it is sent nothing, as by the reference.
  std::span<const config::Alias> aliases{};
};

// `train` covers the training world, `infer` one engine. Empty metas on either side give an empty plan. Refuses: a
// broken key contract, a parameter or replica without shards, offsets that do not fit shapes, ranks outside the world.
Result<OperationList> mapping_operations(const MetaSet& train, const MetaSet& infer, const PlanOptions& options,
                                         const NamePolicy& policy);

// Orders operations, in any order, as the wire has them. `names` of both sides.
std::shared_ptr<const TransferPlan> order_operations(OperationList list, const PlanOptions& options,
                                                     std::shared_ptr<const NameTable> train_names,
                                                     std::shared_ptr<const NameTable> infer_names);

Result<std::shared_ptr<const TransferPlan>> build_transfer_plan(const MetaSet& train, const MetaSet& infer,
                                                                const PlanOptions& options, const NamePolicy& policy);

}  // namespace areal::proto
