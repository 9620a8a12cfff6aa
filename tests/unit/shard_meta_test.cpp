// Metas: how reports of ranks become replicas, and what whole layouts hold.
#include "engine/proto/shard_meta.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/proto/sharding.h"

namespace areal::proto {
namespace {

TEST(ShardMeta, UncutParameterIsOneReplicaPerRank) {
  MetaSet metas;
  for (std::uint32_t name = 0; name < 3; ++name) {
    ASSERT_TRUE(metas.add({.name = name, .local = Shape::of(8, 8)}, std::vector<LocalShard>{{0, 0}}));
  }
  EXPECT_EQ(metas.shards.size(), 3U);
  EXPECT_EQ(metas.parameters[2].replica_count, 1U);
  EXPECT_EQ(metas.shards[2].offset, Offsets{});
}

TEST(ShardMeta, TwoTensorRanksFormOneReplica) {
  MetaSet metas;
  const ParameterCut cut{.local = Shape::of(4, 8), .sharding = Sharding::kTp, .cut = 0, .num_shards = 2};
  ASSERT_TRUE(metas.add(cut, std::vector<LocalShard>{{0, 0}, {1, 1}}));
  EXPECT_EQ(metas.parameters[0].shape, Shape::of(8, 8));
  EXPECT_EQ(metas.parameters[0].replica_count, 1U);
  EXPECT_EQ(metas.shards[1].offset, (Offsets{4, 0, 0}));
}

TEST(ShardMeta, DataParallelCopiesAreSeparateReplicas) {
  MetaSet metas;
  const ParameterCut cut{.local = Shape::of(2, 8), .sharding = Sharding::kDpTp, .cut = 0, .num_shards = 2};
  ASSERT_TRUE(metas.add(cut, std::vector<LocalShard>{{0, 0}, {1, 1}, {2, 0}, {3, 1}}));
  EXPECT_EQ(metas.parameters[0].replica_count, 2U);
  EXPECT_EQ(metas.shards.size(), 4U);
  EXPECT_EQ(metas.shards_of(metas.replicas[1])[0].global_rank, 2U);
  EXPECT_FALSE(metas.add(cut, std::vector<LocalShard>{{0, 0}, {1, 1}, {2, 0}}));
  EXPECT_FALSE(metas.add({.local = Shape{}}, std::vector<LocalShard>{{0, 0}}));
}

TEST(ShardMeta, PiecesBeyondTheirIntegersAreRefused) {
  MetaSet metas;
  ParameterCut cut{.local = Shape::of(0x7FFFFFFF, 4), .sharding = Sharding::kTp, .cut = 0, .num_shards = 2};
  ASSERT_TRUE(metas.add(cut, std::vector<LocalShard>{{0, 0}, {1, 1}}));
  EXPECT_EQ(metas.shards[1].offset, (Offsets{0x7FFFFFFF, 0, 0}));
  cut.local = Shape::of(0x80000000, 4);
  EXPECT_FALSE(metas.add(cut, std::vector<LocalShard>{{0, 0}, {1, 1}}));
  // So many pieces that a list of them would not fit memory, and nobody has most of them.
  cut.local = Shape::of(1, 4);
  cut.num_shards = 0xFFFFFFFF;
  EXPECT_FALSE(metas.add(cut, std::vector<LocalShard>{{0, 0}, {1, 1}}));
  EXPECT_EQ(metas.parameters.size(), 1U);
  EXPECT_FALSE(inference_metas(config::model_by_name("tiny").value(), {.tp = 2, .pp = 0x80000001}));
}

TEST(ShardMeta, ARankSeesItsOwnShardsAndAnUnknownRankNone) {
  const config::ModelSpec tiny = config::model_by_name("tiny").value();
  const MetaSet metas = training_metas(tiny, {.dp = 2, .tp = 4, .ep = 8}).value();
  const auto mine = metas.shards_of_rank(5);
  ASSERT_TRUE(mine);
  // 4 layers of one expert (3 tensors) and 9 others, embedding, norm, head.
  EXPECT_EQ(mine->size(), 4U * (3 + 9) + 3);
  EXPECT_FALSE(metas.shards_of_rank(8));
  EXPECT_EQ(metas.axes_of(5)->tp_rank, 1U);
  EXPECT_EQ(metas.axes_of(5)->dp_rank, 1U);
  EXPECT_EQ(metas.axes_of(5)->ep_rank, 5U);
}

TEST(ShardMeta, OfTwoThatClaimRankZeroTheFirstCoreCounts) {
  std::vector<RankAxes> claims(2);
  claims[0].dp_rank = 1;
  EXPECT_EQ(*canonical_claim(claims), 1U);
  EXPECT_FALSE(canonical_claim(std::span(claims).first(1)));
}

TEST(Sharding, NamesSayHowTheyAreSpread) {
  const InstanceSizes sizes{.tp = 4, .attn_tp = 4, .ep = 1};
  EXPECT_EQ(*sharding_of_name("model.layers.0.self_attn.q_proj.weight", sizes), Sharding::kTp);
  EXPECT_EQ(*sharding_of_name("model.norm.weight", sizes), Sharding::kNone);
  EXPECT_EQ(*sharding_of_name("model.layers.0.mlp.gate.weight", sizes), Sharding::kNone);
  EXPECT_EQ(*sharding_of_name("model.layers.0.mlp.experts.3.up_proj.weight", {.tp = 4, .attn_tp = 4, .ep = 2}),
            Sharding::kEpTp);
  EXPECT_EQ(*sharding_of_name("model.layers.0.mlp.experts.3.up_proj.weight", {.tp = 4, .attn_tp = 4, .ep = 4}),
            Sharding::kEp);
  EXPECT_EQ(*sharding_of_name("lm_head.weight", {.tp = 4, .attn_tp = 4, .head_is_cut = false}), Sharding::kNone);
  EXPECT_FALSE(sharding_of_name("lm_head.weight", {.tp = 4, .attn_tp = 2, .dp = 2}));
  EXPECT_EQ(*sharding_of_name("model.layers.0.self_attn.k_proj.weight",
                              {.tp = 4, .attn_tp = 2, .dp = 2, .dp_attention = true}),
            Sharding::kDpTp);
}

TEST(Sharding, AttentionTakesAttentionRanksAndDenseTakesTensorRanks) {
  RankAxes axes;
  axes.attn_tp_rank = 3;
  axes.tp_rank = 2;
  axes.cp_rank = 1;
  EXPECT_EQ(planner_axis("model.layers.0.self_attn.q_proj.weight", axes, {.tp = 4, .attn_tp = 8}), (PlannerAxis{3, 8}));
  EXPECT_EQ(planner_axis("model.layers.0.mlp.up_proj.weight", axes, {.tp = 4, .attn_tp = 8}), (PlannerAxis{2, 4}));
}

TEST(Sharding, LayersAreRenumberedByVirtualStageThenRank) {
  EXPECT_EQ(global_layer(0, 0, 1, 2, 4), 2U);
  EXPECT_EQ(global_layer(1, 1, 0, 2, 4), 9U);
}

TEST(Sharding, MoreTensorRanksThanKeyHeadsHoldCopies) {
  const config::ModelSpec tiny = config::model_by_name("tiny").value();  // 4 key-value heads.
  const MetaSet metas = inference_metas(tiny, {.tp = 8}).value();
  const config::Parameter* key = tiny.find("model.layers.0.self_attn.k_proj.weight");
  const auto meta = std::ranges::find(metas.parameters, key->name, &ParameterMeta::name);
  EXPECT_EQ(meta->num_shards, 4U);
  EXPECT_EQ(meta->replica_count, 2U);
}

TEST(Sharding, ExtentsThatDoNotDivideAreRefusedByName) {
  const config::ModelSpec tiny = config::model_by_name("tiny").value();
  const auto metas = inference_metas(tiny, {.tp = 32});
  ASSERT_FALSE(metas);
  EXPECT_NE(metas.error().detail.find("does not divide by 32 shards"), std::string::npos);
  EXPECT_FALSE(training_metas(tiny, {.dp = 16, .ep = 16}));
}

}  // namespace
}  // namespace areal::proto
