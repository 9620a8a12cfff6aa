// Transfer plans: the key contract, the round robin, the order on the wire, and the plan of the 30B model.
#include "engine/proto/transfer_plan.h"

#include <gtest/gtest.h>

#include "engine/proto/overlap.h"
#include "engine/proto/plan_digest.h"
#include "tests/plan/plan_fixtures.h"

namespace areal::proto {
namespace {

constexpr config::ParallelStrategy kTrain{.dp = 2, .tp = 4, .ep = 8};
constexpr config::ParallelStrategy kInfer{.dp = 2, .tp = 4};

std::string refusal(const MetaSet& train, const MetaSet& infer, const PlanOptions& options) {
  const auto plan = plan_of(train, infer, options);
  return plan ? "accepted" : plan.error().detail;
}

TEST(TransferPlan, WorldCountsInferenceRanksFirst) {
  const PlanWorld world{4, 2, 2};
  EXPECT_EQ(world.world(), 6U);
  EXPECT_EQ(world.instance(), 2U);
  EXPECT_EQ(world.infer_rank(1, 1), 3U);
  EXPECT_EQ(world.train_rank(1), 5U);
  EXPECT_EQ(check_world({4, 2, 0}).error().detail, "num_infer_engines must be positive");
  EXPECT_FALSE(check_world({5, 2, 2}));
  EXPECT_TRUE(check_world({0x8000, 0x7FFF, 1}));
  EXPECT_FALSE(check_world({0x8000, 0x8000, 1}));
  EXPECT_FALSE(check_world({0xFFFFFFF0, 0x20, 1})) << "together 16 in 32 bits";
  EXPECT_TRUE(check_world({0xFFFE, 1, 1}));
  EXPECT_FALSE(check_world({0xFFFF, 1, 1}));
  EXPECT_FALSE(check_world({0xFFFFFFFF, 2, 1}));  // Their sum would be 1.
}

TEST(TransferPlan, EmptyMetadataGivesNoOperations) {
  const MetaSet one = make_metas({whole("param1")});
  EXPECT_TRUE((*plan_of(MetaSet{}, one, {.world = {1, 1, 1}}))->ops.empty());
  EXPECT_EQ((*plan_of(one, one, {.world = {1, 1, 1}}))->ops.size(), 1U);
}

TEST(TransferPlan, OnlyTheTiedAliasMayBeExtra) {
  const MetaSet train = make_metas({whole("param1"), whole("model.embed_tokens.weight")});
  const MetaSet tied = make_metas({whole("param1"), whole("model.embed_tokens.weight"), whole("lm_head.weight")});
  EXPECT_EQ(refusal(train, tied, {.world = {1, 1, 1}}), "accepted");
  EXPECT_NE(refusal(train, tied, {.world = {1, 1, 1}, .strict_names = true}).find("extra_on_infer=['lm_head.weight']"),
            std::string::npos);
  const MetaSet extra = make_metas({whole("param1"), whole("model.embed_tokens.weight"), whole("param_extra")});
  EXPECT_NE(refusal(train, extra, {.world = {1, 1, 1}}).find("unsupported_extra_on_infer=['param_extra']"),
            std::string::npos);
  const MetaSet missing = make_metas({whole("param1")});
  EXPECT_NE(refusal(train, missing, {.world = {1, 1, 1}}).find("missing_on_infer=['model.embed_tokens.weight']"),
            std::string::npos);
}

// A policy that leaves unmatched names out is what the contract protects against; only such a policy may.
TEST(TransferPlan, PolicyRenamesAndDecidesOnUnmatchedNames) {
  class SkipUnmatched final : public NamePolicy {
   public:
    [[nodiscard]] std::string_view engine_name(std::string_view name) const override { return name; }
    [[nodiscard]] bool refuses_unmatched() const override { return false; }
  };
  const MetaSet train = make_metas({whole("a"), whole("b")});
  const MetaSet infer = make_metas({whole("a"), whole("z")});
  const RenamePolicy renames(std::vector<RenamePolicy::Rename>{{"b", "z"}});
  const auto plan = build_transfer_plan(train, infer, {.world = {1, 1, 1}}, renames);
  ASSERT_TRUE(plan);
  ASSERT_EQ((*plan)->tensors.size(), 2U);
  EXPECT_EQ((*plan)->name_of((*plan)->tensors[1]), "z");
  EXPECT_EQ((*(*plan)->train_names)[(*plan)->tensors[1].train_name], "b");
  const MetaSet fewer = make_metas({whole("a")});
  EXPECT_FALSE(build_transfer_plan(train, fewer, {.world = {1, 1, 1}}, RenamePolicy{}));
  const auto skipped = build_transfer_plan(train, fewer, {.world = {1, 1, 1}}, SkipUnmatched{});
  ASSERT_TRUE(skipped);
  EXPECT_EQ((*skipped)->tensors.size(), 1U);
}

TEST(TransferPlan, ReplicasWithoutShardsAreRefused) {
  const MetaSet good = make_metas({whole("param1")});
  EXPECT_EQ(refusal(make_metas({{"param1", {}}}), good, {.world = {1, 1, 1}}),
            "No replicas found for parameter param1");
  EXPECT_NE(refusal(make_metas({{"param1", {{}}}}), good, {.world = {1, 1, 1}}).find("index"), std::string::npos);
  EXPECT_EQ(refusal(make_metas({{"param1", {{{0, {}, {2, 2}}}}}}), good, {.world = {1, 1, 1}}),
            "Shard has empty global_offset");
  EXPECT_NE(refusal(make_metas({{"param1", {{{0, {0, 0}, {2, 2, 2}}}}}}), good, {.world = {1, 1, 1}})
                .find("Dimension mismatch"),
            std::string::npos);
  EXPECT_NE(refusal(make_metas({{"param1", {{{7, {0, 0}, {2, 2}}}}}}), good, {.world = {1, 1, 1}}).find("outside"),
            std::string::npos);
}

// Context-parallel copies are ordinary replicas, taken in the order given: not re-sorted by rank.
TEST(TransferPlan, OrderOfTrainingReplicasIsKept) {
  const ParameterText copies{"lm_head.weight", {{{1, {0, 0}, {4, 2}}}, {{0, {0, 0}, {4, 2}}}}};
  const ParameterText engine{"lm_head.weight", {{{0, {0, 0}, {4, 2}}}}};
  const auto plan = plan_of(make_metas({copies}), make_metas({engine}), {.world = {2, 2, 2}});
  ASSERT_TRUE(plan);
  ASSERT_EQ((*plan)->lists.size(), 2U);
  EXPECT_EQ((*plan)->find(3, 0)->op_count, 1U);  // The first engine replica is served by rank 1.
  EXPECT_EQ((*plan)->find(2, 1)->op_count, 1U);
}

// The order must not depend on how metas happen to list shards: both ends sort by offset, at the sender first.
TEST(TransferPlan, InsideATensorOffsetsDecideTheOrder) {
  const MetaSet train = make_metas({{"w", {{{0, {4}, {4}}, {0, {0}, {4}}}}}});
  const MetaSet infer = make_metas({{"w", {{{0, {6}, {2}}, {0, {2}, {4}}, {0, {0}, {2}}}}}});
  const auto plan = *plan_of(train, infer, {.world = {1, 1, 1}});
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  for (const PlanOp& op : plan->rank(0).ops(0)) {
    order.emplace_back(plan->regions[op.region].send_offset[0], plan->regions[op.region].recv_offset[0]);
  }
  EXPECT_EQ(order, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 0}, {0, 2}, {2, 0}, {2, 0}}));
}

TEST(TransferPlan, BoxesOverlapOrDoNot) {
  const auto box = [](std::uint32_t start, std::uint32_t extent) {
    return ShardMeta{0, Shape::of(extent, extent), {start, start, 0}, 2};
  };
  EXPECT_FALSE(overlap_of(box(0, 2), box(3, 2)).has_value());
  const std::optional<Region> region = overlap_of(box(1, 3), box(0, 3));
  ASSERT_TRUE(region.has_value());
  EXPECT_EQ(region->send_offset, (Offsets{0, 0, 0}));
  EXPECT_EQ(region->recv_offset, (Offsets{1, 1, 0}));
  EXPECT_EQ(region->extent, Shape::of(2, 2));
}

// In 32 bits the end of such a shard lies before its beginning, and the plan would lack it without a word.
TEST(TransferPlan, ShardsThatEndBeyond32BitsAreRefused) {
  const auto at = [](std::uint32_t offset, std::uint32_t extent) {
    return ParameterText{"w", {{{0, {offset}, {extent}}}}};
  };
  const PlanOptions options{.world = {1, 1, 1}};
  const MetaSet last = make_metas({at(0xFFFFFFF0, 0xF)});
  const auto plan = plan_of(last, last, options);
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ((*plan)->ops.size(), 1U);
  EXPECT_EQ((*plan)->ops[0].elements, 0xFU);
  const MetaSet beyond = make_metas({at(0xFFFFFFF0, 0x20)});
  EXPECT_NE(refusal(beyond, last, options).find("2^32"), std::string::npos);
  EXPECT_NE(refusal(last, beyond, options).find("2^32"), std::string::npos);
  // Boxes alone are right there as well.
  const ShardMeta box{0, Shape::of(0x20), {0xFFFFFFF0, 0, 0}, 1};
  ASSERT_TRUE(overlap_of(box, box).has_value());
  EXPECT_EQ(overlap_of(box, box)->extent, Shape::of(0x20));
}

// Ends and products that do not fit their integers would come round again, as holes or as small numbers.
TEST(TransferPlan, ShardsBeyondTheirIntegersAreRefused) {
  const auto planned = [](std::vector<std::uint32_t> offset, std::vector<std::uint32_t> shape) {
    const MetaSet metas = make_metas({{"w", {{{0, std::move(offset), std::move(shape)}}}}});
    return plan_of(metas, metas, {.world = {1, 1, 1}});
  };
  constexpr std::uint32_t kMost = 0xFFFFFFFF;
  const auto last = planned({kMost - 10, 0}, {10, 2});
  ASSERT_TRUE(last);
  EXPECT_EQ((*last)->stats().elements, 20U);
  EXPECT_TRUE(planned({kMost, 0, 0}, {0, kMost, kMost}));
  EXPECT_FALSE(planned({kMost - 10, 0}, {11, 2}));
  EXPECT_FALSE(planned({0, kMost}, {2, 1}));
  EXPECT_FALSE(planned({0, 0}, {kMost, kMost}));
  EXPECT_FALSE(planned({0, 0, 0}, {kMost, kMost, kMost}));
}

TEST(TransferPlan, StatsCountWireBytesOfTheReceiversDtype) {
  ParameterText train{"w", {{{0, {0}, {2}}}}, DType::kF32};
  ParameterText infer = train;
  auto plan = *plan_of(make_metas({train}), make_metas({infer}), {.world = {1, 1, 1}});
  EXPECT_EQ(plan->rank(0).stats().peers, 1U);
  EXPECT_EQ(plan->rank(0).stats().ops, 1U);
  EXPECT_EQ(plan->rank(0).stats().elements, 2U);
  EXPECT_EQ(plan->rank(0).stats().bytes, 8U);
  EXPECT_EQ(plan->rank(0).stable_hash(), plan->rank(0).stable_hash());
  infer.dtype = DType::kBf16;  // The sender casts: bytes are those of the receiver.
  plan = *plan_of(make_metas({train}), make_metas({infer}), {.world = {1, 1, 1}});
  EXPECT_EQ(plan->rank(0).stats().bytes, 4U);
  EXPECT_EQ(plan->ops[0].storage, DType::kF32);
  EXPECT_EQ(plan->wire_dtypes(), std::vector<DType>{DType::kBf16});
}

TEST(TransferPlan, SplitMergeAndUnevenPiecesAreWrittenOnce) {
  const auto pieces = [](std::initializer_list<std::uint32_t> sizes) {
    ReplicaText replica;
    std::uint32_t start = 0;
    for (const std::uint32_t size : sizes) {
      replica.push_back({static_cast<std::uint32_t>(replica.size()), {start}, {size}});
      start += size;
    }
    return make_metas({{"w", {replica}}});
  };
  struct Layouts {
    MetaSet train, infer;
    PlanWorld world;
  };
  for (const Layouts& layouts :
       {Layouts{pieces({8}), pieces({4, 4}), {2, 1, 1}}, Layouts{pieces({4, 4}), pieces({8}), {1, 2, 1}},
        Layouts{pieces({5, 3}), pieces({3, 5}), {2, 2, 1}}}) {
    const auto first = plan_of(layouts.train, layouts.infer, {.world = layouts.world});
    const auto second = plan_of(layouts.train, layouts.infer, {.world = layouts.world});
    ASSERT_TRUE(first);
    EXPECT_TRUE(covers_once(**first, layouts.infer));
    EXPECT_EQ(plan_digest(**first), plan_digest(**second));
  }
}

TEST(TransferPlan, LiveModelIsCoveredOnceAndDataParallelRanksShareTheLoad) {
  const config::ModelSpec big = config::model_by_name("qwen3-30b-a3b").value();
  const config::ModelSpec live = config::live_model(big, kTrain, kInfer).value();
  const MetaSet train = training_metas(live, kTrain).value();
  const MetaSet infer = inference_metas(live, kInfer).value();
  const auto plan = plan_of(train, infer, {.world = {8, 8, 2}});
  ASSERT_TRUE(plan);
  EXPECT_TRUE(covers_once(**plan, infer));
  for (std::uint32_t rank = 8; rank < 16; ++rank) EXPECT_GT((*plan)->rank(rank).stats().ops, 0U);
}

TEST(TransferPlan, PlanOfThe30BModelSendsEveryByteOncePerEngine) {
  const config::ModelSpec big = config::model_by_name("qwen3-30b-a3b").value();
  const auto plan =
      plan_of(training_metas(big, kTrain).value(), inference_metas(big, kInfer).value(), {.world = {8, 8, 2}});
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)->tensors.size(), 18'867U);
  EXPECT_EQ((*plan)->stats().ops, 150'936U);
  // Norms and routers are whole on each of the four ranks of an engine: three copies more than the model has.
  std::uint64_t replicated = 0;
  for (const config::Parameter& parameter : big.parameters) {
    const bool copied =
        parameter.shard == config::ShardClass::kReplicated || parameter.shard == config::ShardClass::kRouter;
    if (copied) replicated += parameter.shape.elements() * 2;
  }
  EXPECT_EQ((*plan)->stats().bytes, 2 * (big.wire_bytes() + 3 * replicated));
  EXPECT_EQ((*plan)->regions.size(), 14U);
}

// A rank that prunes while it builds must come to the same plan as one that does not.
TEST(TransferPlan, PruningChangesNothing) {
  const config::ModelSpec tiny = config::model_by_name("tiny").value();
  const MetaSet train = training_metas(tiny, kTrain).value();
  const MetaSet infer = inference_metas(tiny, kInfer).value();
  const auto whole_plan = *plan_of(train, infer, {.world = {8, 8, 2}});
  const auto shards = static_cast<std::uint32_t>(2 * infer.shards.size() + train.shards.size());
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    const auto pruned = *plan_of(train, infer, {.world = {8, 8, 2}, .only_rank = rank, .prune_above = shards - 1});
    const auto kept = *plan_of(train, infer, {.world = {8, 8, 2}, .only_rank = rank, .prune_above = shards});
    EXPECT_EQ(pruned->rank(rank).stable_hash(), kept->rank(rank).stable_hash());
    EXPECT_EQ(pruned->rank(rank).stable_hash(), whole_plan->rank(rank).stable_hash());
    EXPECT_EQ(pruned->ops.size(), whole_plan->rank(rank).stats().ops);
  }
}

TEST(TransferPlan, SequenceHashNoticesASwapOfTwoNames) {
  const auto metas = [](const char* first, const char* second) { return make_metas({whole(first), whole(second)}); };
  const auto one = *plan_of(metas("a", "b"), metas("a", "b"), {.world = {1, 1, 1}});
  const auto other = *plan_of(metas("a", "c"), metas("a", "c"), {.world = {1, 1, 1}});
  EXPECT_NE(one->lists[0].sequence, other->lists[0].sequence);
}

}  // namespace
}  // namespace areal::proto
