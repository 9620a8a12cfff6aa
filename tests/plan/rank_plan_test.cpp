// Parts of plans computed alone: equal to the whole plan's, proven, and cheap in a large world.
#include "engine/proto/rank_plan.h"

#include <gtest/gtest.h>

#include "engine/proto/coverage.h"
#include "engine/proto/layout_grids.h"
#include "engine/proto/plan_digest.h"
#include "tests/plan/random_layouts.h"

namespace areal::proto {
namespace {

struct Grids {
  GridSet train;
  GridSet infer;
  PlanWorld world;
  std::vector<config::Alias> aliases;
};

// Megatron or fully sharded on the training side; uneven rows if the latter.
std::optional<Grids> random_grids() {
  const ModelLayouts layouts = random_model_layouts();
  auto infer = inference_grids(layouts.model, layouts.infer);
  if (!infer) return std::nullopt;
  PlanWorld world = layouts.world;
  if (*rc::gen::arbitrary<bool>()) {
    auto train = training_grids(layouts.model, layouts.train);
    if (!train) return std::nullopt;
    return Grids{std::move(*train), std::move(*infer), world, layouts.model.aliases};
  }
  const FsdpSizes sizes{
      .shards = *rc::gen::inRange(1U, 12U), .tp = random_size({1, 2, 3}), .copies = *rc::gen::inRange(1U, 4U)};
  auto train = fsdp_grids(layouts.model, sizes);
  if (!train) return std::nullopt;
  world.train_world = sizes.shards * sizes.tp * sizes.copies;
  return Grids{std::move(*train), std::move(*infer), world, layouts.model.aliases};
}

RC_GTEST_PROP(RankPlan, EveryRankComesToItsPartOfTheWholePlan, ()) {
  const auto grids = random_grids();
  RC_PRE(grids.has_value());
  const auto rule = *rc::gen::element(ReplicaRule::kRoundRobin, ReplicaRule::kFewestBytes);
  const RenamePolicy names;
  const std::span<const config::Alias> aliases = grids->aliases;
  const auto whole = *build_transfer_plan(metas_of(grids->train), metas_of(grids->infer),
                                          {.world = grids->world, .replicas = rule, .aliases = aliases}, names);
  DigestSum sent;
  DigestSum received;
  for (std::uint32_t rank = 0; rank < grids->world.world(); ++rank) {
    const PlanOptions options{.world = grids->world, .only_rank = rank, .replicas = rule, .aliases = aliases};
    const auto part = build_rank_plan(grids->train, grids->infer, options, names);
    RC_ASSERT(part.has_value());
    RC_ASSERT((*part)->rank(rank).stable_hash() == whole->rank(rank).stable_hash());
    RC_ASSERT((*part)->ops.size() == whole->rank(rank).stats().ops);
    (grids->world.is_training(rank) ? sent : received).add(digest_share((*part)->rank(rank)).total);
    RC_ASSERT(!find_coverage_fault(**part, ShardBook(grids->train), ShardBook(grids->infer), aliases).has_value());
  }
  RC_ASSERT(digest_of_shares(grids->world, sent) == plan_digest(*whole));
  RC_ASSERT(digest_of_shares(grids->world, received) == plan_digest(*whole));
}

// Shards that end short or empty must not leave a hole, nor be asked for what they lack.
RC_GTEST_PROP(RankPlan, UnevenFullyShardedLayoutsAreProven, ()) {
  const ModelLayouts layouts = random_model_layouts();
  const auto infer = inference_grids(layouts.model, layouts.infer);
  RC_PRE(infer.has_value());
  const FsdpSizes sizes{.shards = *rc::gen::inRange(1U, 40U), .tp = random_size({1, 2, 4}), .copies = 1};
  const auto train = fsdp_grids(layouts.model, sizes);
  RC_PRE(train.has_value());
  PlanWorld world = layouts.world;
  world.train_world = train->world;
  const MetaSet train_metas = metas_of(*train);
  const MetaSet infer_metas = metas_of(*infer);
  const auto plan = *plan_of(train_metas, infer_metas, {.world = world, .aliases = layouts.model.aliases});
  const auto fault = find_coverage_fault(*plan, ShardBook(train_metas), ShardBook(infer_metas), layouts.model.aliases);
  RC_ASSERT((fault ? describe(*fault) : "proven") == "proven");
}

TEST(RankPlan, RefusesWhatTheWholePlanRefuses) {
  const config::ModelSpec model = config::model_by_name("tiny").value();
  const GridSet train = training_grids(model, {.dp = 2}).value();
  GridSet infer = inference_grids(model, {.tp = 2}).value();
  const RenamePolicy names;
  const PlanOptions options{.world = {2, 2, 1}, .only_rank = 0};
  ASSERT_TRUE(build_rank_plan(train, infer, options, names));
  EXPECT_FALSE(build_rank_plan(train, infer, {.world = {2, 1, 1}, .only_rank = 0}, names));
  EXPECT_FALSE(build_rank_plan(train, infer, {.world = {2, 2, 0}, .only_rank = 0}, names));
  infer.parameters.front().shape.extent[0] += 2;
  EXPECT_FALSE(build_rank_plan(train, infer, options, names));
  infer.parameters.erase(infer.parameters.begin());
  EXPECT_FALSE(build_rank_plan(train, infer, options, names));
  GridSet huge{train.names, {train.parameters.front()}, 2};
  huge.parameters.front().shape = Shape::of(0xFFFFFFFF, 0xFFFFFFFF);
  EXPECT_FALSE(build_rank_plan(huge, huge, options, names));
}

// 10,000 ranks: 1,250 engines of four, 625 copies of a training layout of eight. The whole plan would have 94 million
// operations.
TEST(RankPlan, OneRankOfTenThousandNeedsOnlyItsPart) {
  const config::ModelSpec model = config::model_by_name("qwen3-30b-a3b").value();
  const GridSet train = training_grids(model, {.dp = 1250, .tp = 4, .ep = 8}).value();
  const GridSet infer = inference_grids(model, {.tp = 4}).value();
  const PlanWorld world{5000, 5000, 1250};
  for (const std::uint32_t rank : {0U, 4999U, 5000U, 9999U}) {
    const auto part = *build_rank_plan(train, infer, {.world = world, .only_rank = rank}, RenamePolicy{});
    EXPECT_FALSE(find_coverage_fault(*part, ShardBook(train), ShardBook(infer)).has_value());
    EXPECT_LT(part->ops.size(), 40'000U);
    EXPECT_GT(part->ops.size(), 2'000U);
  }
}

}  // namespace
}  // namespace areal::proto
