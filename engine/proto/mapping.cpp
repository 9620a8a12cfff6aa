// Finds the operations of a plan in the reference's global order.
#include <fmt/format.h>

#include <utility>

#include "engine/proto/key_contract.h"
#include "engine/proto/operation_writer.h"
#include "engine/proto/overlap.h"
#include "engine/proto/shard_book.h"
#include "engine/proto/transfer_plan.h"

namespace areal::proto {
namespace {

class Mapper {
 public:
  Mapper(const MetaSet& train, const MetaSet& infer, const PlanOptions& options)
      : train_(train),
        infer_(infer),
        options_(options),
        world_(options.world),
        choice_(options.replicas, options.world.train_world) {
    const std::uint64_t shards = std::uint64_t{world_.engines} * infer.shards.size() + train.shards.size();
    prunes_ = options.only_rank.has_value() && shards > options.prune_above;
    if (!options.aliases.empty()) engine_shards_.emplace(infer);
  }

  Status map(const MatchedName& match) {
    stands_for_ = match.stands_for;
    const ParameterMeta& sender = train_.parameters[match.train];
    const ParameterMeta& receiver = infer_.parameters[match.infer];
    const std::string& name = infer_.name_of(receiver);
    if (sender.replica_count == 0 || receiver.replica_count == 0) {
      return Error{Errc::kInvalid, fmt::format("No replicas found for parameter {}", name)};
    }
    AREAL_TRY(check_shards(train_, sender, world_.train_world, name));
    AREAL_TRY(check_shards(infer_, receiver, world_.instance(), name));
    const auto senders = train_.replicas_of(sender);
    choice_.next({sender.replica_count, std::uint64_t{world_.engines} * receiver.replica_count},
                 [&](std::uint32_t replica, auto&& visit) {
                   for (const ShardMeta& shard : train_.shards_of(senders[replica])) {
                     visit(shard.global_rank, shard.shape.elements() * size_of(receiver.dtype));
                   }
                 });
    writer_.begin({sender.name, receiver.name, sender.dtype, receiver.dtype, hash_text(name)});
    std::uint64_t number = 0;
    for (std::uint32_t engine = 0; engine < world_.engines; ++engine) {
      for (const ReplicaMeta& replica : infer_.replicas_of(receiver)) {
        AREAL_TRY(map_replica(replica, engine, senders[choice_.replica_of(number++)]));
      }
    }
    return Unit{};
  }

  OperationList take() { return writer_.take(); }

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

  [[nodiscard]] bool is_held_as_source(const ShardMeta& shard) const {
    if (!stands_for_) return false;
    const auto source = engine_shards_->find(*stands_for_, shard.global_rank);
    return source && source->shard.shape == shard.shape && source->shard.offset == shard.offset;
  }

  Status map_replica(const ReplicaMeta& replica, std::uint32_t engine, const ReplicaMeta& source) {
    for (const ShardMeta& receiver : infer_.shards_of(replica)) {
      if (is_held_as_source(receiver)) continue;
      const std::uint32_t recv = world_.infer_rank(receiver.global_rank, engine);
      for (const ShardMeta& sender : train_.shards_of(source)) {
        const std::uint32_t send = world_.train_rank(sender.global_rank);
        if (prunes_ && is_foreign(send, recv)) continue;
        if (sender.shape.rank != receiver.shape.rank) {
          return Error{Errc::kInvalid, fmt::format("Dimension mismatch between shards: {} dims sent, {} received",
                                                   sender.shape.rank, receiver.shape.rank)};
        }
        const std::optional<Region> region = overlap_of(sender, receiver);
        if (region.has_value() && !is_foreign(send, recv)) writer_.add(send, recv, *region);
      }
    }
    return Unit{};
  }

  const MetaSet& train_;
  const MetaSet& infer_;
  const PlanOptions& options_;
  PlanWorld world_;
  OperationWriter writer_;
  ReplicaChoice choice_;
  std::optional<ShardBook> engine_shards_;   // Only with aliases.
  std::optional<std::uint32_t> stands_for_;  // Of the present match.
  bool prunes_ = false;
};

}  // namespace

Status check_world(const PlanWorld& world) {
  if (world.engines == 0) return Error{Errc::kInvalid, "num_infer_engines must be positive"};
  if (world.infer_world % world.engines != 0) {
    return Error{Errc::kInvalid, fmt::format("{} inference ranks do not divide into {} engines of equal size",
                                             world.infer_world, world.engines)};
  }
  if (std::uint64_t{world.infer_world} + world.train_world > 0xFFFF)
    return Error{Errc::kInvalid, "a transfer world has at most 65,535 ranks"};
  return Unit{};
}

Result<OperationList> mapping_operations(const MetaSet& train, const MetaSet& infer, const PlanOptions& options,
                                         const NamePolicy& policy) {
  AREAL_TRY(check_world(options.world));
  if (train.parameters.empty() || infer.parameters.empty()) return OperationList{};
  Result<std::vector<MatchedName>> matched =
      match_names(names_of(train), names_of(infer), policy, options.strict_names);
  if (!matched) return std::move(matched).error();
  Mapper mapper(train, infer, options);
  for (const MatchedName& match : with_aliases(std::move(*matched), infer, options.aliases)) {
    AREAL_TRY(mapper.map(match));
  }
  return mapper.take();
}

}  // namespace areal::proto
