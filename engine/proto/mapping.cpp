// Finds the operations of a plan in the reference's global order.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/proto/key_contract.h"
#include "engine/proto/overlap.h"
#include "engine/proto/transfer_plan.h"

namespace areal::proto {
namespace {

// Gives equal boxes one number: open addressing over a power of two of places.
class RegionTable {
 public:
  explicit RegionTable(std::vector<Region>& regions) : regions_(regions), places_(1024, kEmpty) {}

  std::uint32_t intern(const Region& region) {
    std::size_t place = hash(region) & (places_.size() - 1);
    while (places_[place] != kEmpty) {
      if (regions_[places_[place]] == region) return places_[place];
      place = (place + 1) & (places_.size() - 1);
    }
    const auto index = static_cast<std::uint32_t>(regions_.size());
    places_[place] = index;
    regions_.push_back(region);
    if (regions_.size() * 2 > places_.size()) grow();
    return index;
  }

 private:
  static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;

  static std::size_t hash(const Region& region) {
    std::array<std::uint64_t, 5> words{};
    for (std::size_t i = 0; i < kMaxTensorRank; ++i) {
      words[i] = region.send_offset[i] | (std::uint64_t{region.recv_offset[i]} << 32);
    }
    words[3] = region.extent.extent[0] | (std::uint64_t{region.extent.extent[1]} << 32);
    words[4] = region.extent.extent[2] | (std::uint64_t{region.extent.rank} << 32);
    return hash_words(words).low;
  }

  void grow() {
    std::vector<std::uint32_t> larger(places_.size() * 2, kEmpty);
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
      std::size_t place = hash(regions_[i]) & (larger.size() - 1);
      while (larger[place] != kEmpty) place = (place + 1) & (larger.size() - 1);
      larger[place] = i;
    }
    places_ = std::move(larger);
  }

  std::vector<Region>& regions_;
  std::vector<std::uint32_t> places_;
};

class Mapper {
 public:
  Mapper(const MetaSet& train, const MetaSet& infer, const PlanOptions& options)
      : train_(train), infer_(infer), options_(options), world_(options.world), table_(list_.regions) {
    const std::uint64_t shards = std::uint64_t{world_.engines} * infer.shards.size() + train.shards.size();
    prunes_ = options.only_rank.has_value() && shards > options.prune_above;
  }

  Status map(const MatchedName& match) {
    const ParameterMeta& sender = train_.parameters[match.train];
    const ParameterMeta& receiver = infer_.parameters[match.infer];
    const std::string& name = infer_.name_of(receiver);
    if (sender.replica_count == 0 || receiver.replica_count == 0) {
      return Error{Errc::kInvalid, fmt::format("No replicas found for parameter {}", name)};
    }
    AREAL_TRY(check_shards(train_, sender, world_.train_world, name));
    AREAL_TRY(check_shards(infer_, receiver, world_.instance(), name));
    const auto senders = train_.replicas_of(sender);
    std::size_t number = 0;
    for (std::uint32_t engine = 0; engine < world_.engines; ++engine) {
      for (const ReplicaMeta& replica : infer_.replicas_of(receiver)) {
        AREAL_TRY(map_replica(replica, engine, senders[number++ % senders.size()]));
      }
    }
    list_.tensors.push_back({sender.name, receiver.name, sender.dtype, receiver.dtype, hash_text(name)});
    return Unit{};
  }

  OperationList take() { return std::move(list_); }

 private:
  static Status check_shards(const MetaSet& metas, const ParameterMeta& parameter, std::uint32_t world,
                             const std::string& name) {
    for (const ReplicaMeta& replica : metas.replicas_of(parameter)) {
      if (replica.shard_count == 0) {
        return Error{Errc::kInvalid, fmt::format("index out of range: a replica of {} has no shards", name)};
      }
      for (const ShardMeta& shard : metas.shards_of(replica)) {
        AREAL_TRY(check_shard(shard));
        if (shard.global_rank >= world) {
          return Error{Errc::kInvalid,
                       fmt::format("{}: rank {} is outside a world of {}", name, shard.global_rank, world)};
        }
      }
    }
    return Unit{};
  }

  [[nodiscard]] bool is_foreign(std::uint32_t send, std::uint32_t recv) const {
    return options_.only_rank.has_value() && *options_.only_rank != send && *options_.only_rank != recv;
  }

  Status map_replica(const ReplicaMeta& replica, std::uint32_t engine, const ReplicaMeta& source) {
    for (const ShardMeta& receiver : infer_.shards_of(replica)) {
      const std::uint32_t recv = world_.infer_rank(receiver.global_rank, engine);
      for (const ShardMeta& sender : train_.shards_of(source)) {
        const std::uint32_t send = world_.train_rank(sender.global_rank);
        if (prunes_ && is_foreign(send, recv)) continue;
        if (sender.shape.rank != receiver.shape.rank) {
          return Error{Errc::kInvalid, fmt::format("Dimension mismatch between shards: {} dims sent, {} received",
                                                   sender.shape.rank, receiver.shape.rank)};
        }
        const std::optional<Region> region = overlap_of(sender, receiver);
        if (region.has_value() && !is_foreign(send, recv)) add(send, recv, *region);
      }
    }
    return Unit{};
  }

  void add(std::uint32_t send, std::uint32_t recv, const Region& region) {
    PlanOp op;
    op.tensor = static_cast<std::uint32_t>(list_.tensors.size());
    op.region = table_.intern(region);
    op.send = static_cast<TransferRank>(send);
    op.recv = static_cast<TransferRank>(recv);
    op.elements = region.extent.elements();
    list_.ops.push_back(op);
  }

  const MetaSet& train_;
  const MetaSet& infer_;
  const PlanOptions& options_;
  PlanWorld world_;
  OperationList list_;
  RegionTable table_;
  bool prunes_ = false;
};

}  // namespace

Status check_world(const PlanWorld& world) {
  if (world.engines == 0) return Error{Errc::kInvalid, "num_infer_engines must be positive"};
  if (world.infer_world % world.engines != 0) {
    return Error{Errc::kInvalid, fmt::format("{} inference ranks do not divide into {} engines of equal size",
                                             world.infer_world, world.engines)};
  }
  if (world.world() > 0xFFFF) return Error{Errc::kInvalid, "a transfer world has at most 65,535 ranks"};
  return Unit{};
}

Result<OperationList> mapping_operations(const MetaSet& train, const MetaSet& infer, const PlanOptions& options,
                                         const NamePolicy& policy) {
  AREAL_TRY(check_world(options.world));
  if (train.parameters.empty() || infer.parameters.empty()) return OperationList{};
  Result<std::vector<MatchedName>> matched = match_names(train, infer, policy, options.strict_names);
  if (!matched) return std::move(matched).error();
  Mapper mapper(train, infer, options);
  for (const MatchedName& match : *matched) AREAL_TRY(mapper.map(match));
  OperationList list = mapper.take();
  for (PlanOp& op : list.ops) {
    op.wire = list.tensors[op.tensor].wire;
    op.storage = list.tensors[op.tensor].storage;
  }
  return list;
}

}  // namespace areal::proto
