#include "engine/proto/rank_plan.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/check.h"
#include "engine/proto/key_contract.h"
#include "engine/proto/operation_writer.h"
#include "engine/proto/overlap.h"

namespace areal::proto {
namespace {

class RankMapper {
 public:
  RankMapper(const GridSet& train, const GridSet& infer, const PlanOptions& options)
      : train_(train),
        infer_(infer),
        world_(options.world),
        rank_(*options.only_rank),
        choice_(options.replicas, options.world.train_world) {}

  Status map(const MatchedName& match) {
    source_ = match.stands_for ? &infer_.parameters[*match.stands_for] : nullptr;
    const ParameterGrid& sender = train_.parameters[match.train];
    const ParameterGrid& receiver = infer_.parameters[match.infer];
    const std::string& name = (*infer_.names)[receiver.name];
    if (sender.shape.rank != receiver.shape.rank) {
      return Error{Errc::kInvalid, fmt::format("Dimension mismatch between shards: {} dims sent, {} received",
                                               sender.shape.rank, receiver.shape.rank)};
    }
    if (!(sender.shape == receiver.shape)) {
      return Error{Errc::kInvalid, fmt::format("{} is of another size on either side", name)};
    }
    AREAL_TRY(check_shape(sender.shape));
    choose(sender, receiver);
    writer_.begin({sender.name, receiver.name, sender.dtype, receiver.dtype, hash_text(name)});
    if (world_.is_training(rank_)) {
      send(sender, receiver);
    } else {
      receive(sender, receiver);
    }
    return Unit{};
  }

  OperationList take() { return writer_.take(); }

 private:
  [[nodiscard]] bool is_held_as_source(const ShardMeta& shard) const {
    if (source_ == nullptr) return false;
    const std::optional<GridPlace> place = source_->place_of(shard.global_rank);
    if (!place) return false;
    const ShardMeta other = source_->shard(*place);
    return other.shape == shard.shape && other.offset == shard.offset;
  }

  void choose(const ParameterGrid& sender, const ParameterGrid& receiver) {
    bytes_.clear();  // Of each piece; equal in all replicas.
    if (choice_.rule() == ReplicaRule::kFewestBytes) {
      for (std::uint32_t piece = 0; piece < sender.pieces(); ++piece) {
        bytes_.push_back(sender.shard({0, piece}).shape.elements() * size_of(receiver.dtype));
      }
    }
    choice_.next({sender.replicas(), std::uint64_t{world_.engines} * receiver.replicas()},
                 [&](std::uint32_t replica, auto&& visit) {
                   for (std::uint32_t piece = 0; piece < sender.pieces(); ++piece) {
                     visit(sender.rank_of({replica, piece}), bytes_[piece]);
                   }
                 });
  }

  void send(const ParameterGrid& sender, const ParameterGrid& receiver) {
    const std::optional<GridPlace> mine = sender.place_of(rank_ - world_.infer_world);
    if (!mine) return;
    const ShardMeta box = sender.shard(*mine);
    choice_.each_served(mine->replica, [&](std::uint64_t number) {
      const auto engine = static_cast<std::uint32_t>(number / receiver.replicas());
      const auto replica = static_cast<std::uint32_t>(number % receiver.replicas());
      receiver.each_meeting(box, [&](std::uint32_t piece) {
        const ShardMeta other = receiver.shard({replica, piece});
        if (is_held_as_source(other)) return;
        const std::optional<Region> region = overlap_of(box, other);
        if (region.has_value()) writer_.add(rank_, world_.infer_rank(other.global_rank, engine), *region);
      });
    });
  }

  void receive(const ParameterGrid& sender, const ParameterGrid& receiver) {
    const std::optional<GridPlace> mine = receiver.place_of(rank_ % world_.instance());
    if (!mine) return;
    const ShardMeta box = receiver.shard(*mine);
    if (is_held_as_source(box)) return;
    const std::uint64_t engine = rank_ / world_.instance();
    const std::uint32_t source = choice_.replica_of(engine * receiver.replicas() + mine->replica);
    sender.each_meeting(box, [&](std::uint32_t piece) {
      const ShardMeta other = sender.shard({source, piece});
      const std::optional<Region> region = overlap_of(other, box);
      if (region.has_value()) writer_.add(world_.train_rank(other.global_rank), rank_, *region);
    });
  }

  const GridSet& train_;
  const GridSet& infer_;
  PlanWorld world_;
  std::uint32_t rank_;
  OperationWriter writer_;
  ReplicaChoice choice_;
  std::vector<std::uint64_t> bytes_;
  const ParameterGrid* source_ = nullptr;  // What the present match is an alias of.
};

}  // namespace

Result<std::shared_ptr<const TransferPlan>> build_rank_plan(const GridSet& train, const GridSet& infer,
                                                            const PlanOptions& options, const NamePolicy& policy) {
  AREAL_TRY(check_world(options.world));
  AREAL_CHECK(options.only_rank.has_value());
  AREAL_CHECK(*options.only_rank < options.world.world());
  if (train.world > options.world.train_world || infer.world > options.world.instance()) {
    return Error{Errc::kInvalid, fmt::format("layouts of {} and {} ranks in a world of {} and {}", train.world,
                                             infer.world, options.world.train_world, options.world.instance())};
  }
  OperationList list;
  if (!train.parameters.empty() && !infer.parameters.empty()) {
    Result<std::vector<MatchedName>> matched =
        match_names(names_of(train), names_of(infer), policy, options.strict_names);
    if (!matched) return std::move(matched).error();
    RankMapper mapper(train, infer, options);
    for (const MatchedName& match : with_aliases(std::move(*matched), infer, options.aliases)) {
      AREAL_TRY(mapper.map(match));
    }
    list = mapper.take();
  }
  return order_operations(std::move(list), options, train.names, infer.names);
}

}  // namespace areal::proto
