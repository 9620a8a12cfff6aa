// The proof that a plan writes everything once: it holds for what the builder makes, and finds what is planted.
#include "engine/proto/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/changed_plan.h"
#include "tests/plan/random_layouts.h"

namespace areal::proto {
namespace {

using Kind = CoverageFault::Kind;

RC_GTEST_PROP(Coverage, PlansOfUnevenPiecesAreProven, ()) {
  const Layouts layouts = random_layouts();
  const auto plan = *plan_of(layouts.train, layouts.infer, {.world = layouts.world});
  RC_ASSERT(!find_coverage_fault(*plan, ShardBook(layouts.train), ShardBook(layouts.infer)).has_value());
}

RC_GTEST_PROP(Coverage, PlansOfModelLayoutsAreProven, ()) {
  const ModelLayouts layouts = random_model_layouts();
  const auto train = training_metas(layouts.model, layouts.train);
  const auto infer = inference_metas(layouts.model, layouts.infer);
  RC_PRE(train.has_value() && infer.has_value());
  const auto plan = *plan_of(*train, *infer, {.world = layouts.world, .aliases = layouts.model.aliases});
  const auto fault = find_coverage_fault(*plan, ShardBook(*train), ShardBook(*infer), layouts.model.aliases);
  RC_ASSERT((fault ? describe(*fault) : "proven") == "proven");
}

RC_GTEST_PROP(Coverage, EveryPlantedDefectIsFoundWhereItIs, ()) {
  const Layouts layouts = random_layouts();
  const auto plan = *plan_of(layouts.train, layouts.infer, {.world = layouts.world});
  const auto change = *rc::gen::elementOf(all_plan_changes());
  const auto place = *rc::gen::inRange<std::size_t>(0, plan->ops.size());
  const auto dim = *rc::gen::inRange<std::size_t>(0, 2);
  const PlanOp& op = plan->ops[place];
  if (change == PlanChange::kOtherSender) {
    // Another copy of the same elements does as well.
    const auto sender =
        ShardBook(layouts.train).find(plan->tensors[op.tensor].train_name, op.send - layouts.world.infer_world);
    const auto other = ShardBook(layouts.train)
                           .find(plan->tensors[op.tensor].train_name,
                                 (op.send - layouts.world.infer_world + 1) % layouts.world.train_world);
    RC_PRE(!other || sender->shard.offset != other->shard.offset || !(sender->shard.shape == other->shard.shape));
  }
  const auto broken = changed_plan(*plan, change, place, dim);
  const auto fault = find_coverage_fault(*broken, ShardBook(layouts.train), ShardBook(layouts.infer));
  RC_ASSERT(fault.has_value());
  RC_ASSERT(fault->tensor == plan->name_of(plan->tensors[op.tensor]));
  const std::uint32_t next = (op.recv + 1) % layouts.world.infer_world;
  RC_ASSERT(fault->receiver == op.recv || (change == PlanChange::kOtherReceiver && fault->receiver == next));
}

// Two pieces of four rows on the training side, one tensor of eight rows by two columns on the inference side.
struct Example {
  MetaSet train = make_metas({{"w", {{{0, {0, 0}, {4, 2}}, {1, {4, 0}, {4, 2}}}}}});
  MetaSet infer = make_metas({{"w", {{{0, {0, 0}, {8, 2}}}}}});
  std::shared_ptr<const TransferPlan> plan = *plan_of(train, infer, {.world = {1, 2, 1}});

  [[nodiscard]] std::string after(PlanChange change, std::size_t place, std::size_t dim) const {
    const auto broken = changed_plan(*plan, change, place, dim);
    const auto fault = find_coverage_fault(*broken, ShardBook(train), ShardBook(infer));
    return fault ? describe(*fault) : "proven";
  }
};

TEST(Coverage, FaultsNameTensorRangeAndRanks) {
  const Example example;
  EXPECT_EQ(example.after(PlanChange::kDrop, 1, 0), "hole: w[4..8, 0..2] of rank 0");
  EXPECT_EQ(example.after(PlanChange::kRepeat, 0, 0), "overlap: w[0..4, 0..2] of rank 0, from ranks 1, 1");
  EXPECT_EQ(example.after(PlanChange::kShorter, 1, 1), "hole: w[4..8, 1..2] of rank 0");
  EXPECT_EQ(example.after(PlanChange::kLonger, 0, 0), "outside: w[0..5, 0..2] of rank 0, from rank 1");
  EXPECT_EQ(example.after(PlanChange::kRecvOffset, 0, 0), "misplaced: w[1..5, 0..2] of rank 0, from rank 1");
  EXPECT_EQ(example.after(PlanChange::kOtherSender, 0, 0), "misplaced: w[0..4, 0..2] of rank 0, from rank 2");
}

TEST(Coverage, TwoShardsOnOneRankAreAmbiguous) {
  const MetaSet train = make_metas({{"w", {{{0, {0}, {4}}, {0, {4}, {4}}}}}});
  const MetaSet infer = make_metas({{"w", {{{0, {0}, {8}}}}}});
  const auto plan = *plan_of(train, infer, {.world = {1, 1, 1}});
  const auto fault = find_coverage_fault(*plan, ShardBook(train), ShardBook(infer));
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Kind::kAmbiguous);
}

TEST(Coverage, PartOfOneRankIsProvenAlone) {
  const Example example;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto part = *plan_of(example.train, example.infer, {.world = {1, 2, 1}, .only_rank = rank});
    EXPECT_FALSE(find_coverage_fault(*part, ShardBook(example.train), ShardBook(example.infer)).has_value());
  }
}

config::ModelSpec tied_model() {
  config::ModelDims dims = config::tiny_dims();
  dims.tied_embedding = true;
  return config::qwen3_moe_model(dims).value();
}

// An engine that serves a name of its own must hold the same elements under a name that is written, or be sent them.
TEST(Coverage, AliasesNeedTheirSourceOnTheSameRankOrOperations) {
  const config::ModelSpec model = tied_model();
  ASSERT_EQ(model.aliases.size(), 1U);
  using Aliases = std::span<const config::Alias>;
  const auto after = [&](const config::ParallelStrategy& sizes, Aliases sent, Aliases known) {
    const MetaSet train = training_metas(model, {}).value();
    const MetaSet infer = inference_metas(model, sizes).value();
    const auto plan = *plan_of(train, infer, {.world = {sizes.tp * sizes.pp, 1, 1}, .aliases = sent});
    const auto fault = find_coverage_fault(*plan, ShardBook(train), ShardBook(infer), known);
    return fault ? describe(*fault) : "proven";
  };
  EXPECT_EQ(after({.tp = 2}, {}, model.aliases), "proven");
  EXPECT_EQ(after({.tp = 2}, model.aliases, model.aliases), "proven");
  EXPECT_EQ(after({.tp = 2}, {}, {}), "no_source: lm_head.weight[0..32, 0..32] of rank 0");
  // The head of several stages lies far from its source.
  EXPECT_EQ(after({.pp = 2}, {}, model.aliases), "no_source: lm_head.weight[0..64, 0..32] of rank 1");
  EXPECT_EQ(after({.pp = 2}, model.aliases, model.aliases), "proven");
}

// An alias is what a name is only if nothing is sent under it: a head of its own is written once, and no embedding is.
TEST(Coverage, NamesThatAreSentThemselvesAreNoAliases) {
  const ParameterText embedding{"model.embed_tokens.weight", {{{0, {0, 0}, {4, 2}}}}};
  const ParameterText head{"lm_head.weight", {{{0, {0, 0}, {4, 2}}}}};
  const ParameterText far_head{"lm_head.weight", {{{1, {0, 0}, {4, 2}}}}};
  const std::vector<config::Alias> once{{1, 0}};
  const std::vector<config::Alias> twice{{1, 0}, {1, 0}};
  const MetaSet infer = make_metas({embedding, far_head});
  for (const std::vector<config::Alias>& aliases : {once, twice}) {
    for (const MetaSet& train : {make_metas({embedding, head}), make_metas({embedding})}) {
      const auto plan = *plan_of(train, infer, {.world = {2, 1, 1}, .aliases = aliases});
      EXPECT_EQ(plan->stats().elements, 16U);
      EXPECT_FALSE(find_coverage_fault(*plan, ShardBook(train), ShardBook(infer), aliases).has_value());
    }
  }
}

// Two entries of a plan may be of one tensor; what both write is written twice.
TEST(Coverage, OneTensorUnderTwoEntriesIsSeen) {
  const Example example;
  OperationList list{example.plan->tensors, example.plan->regions, example.plan->ops};
  list.tensors.push_back(list.tensors[0]);
  PlanOp again = list.ops[1];
  again.tensor = 1;
  list.ops.push_back(again);
  const auto plan =
      order_operations(std::move(list), {.world = example.plan->world}, example.train.names, example.infer.names);
  const auto fault = find_coverage_fault(*plan, ShardBook(example.train), ShardBook(example.infer));
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(describe(*fault), "overlap: w[4..8, 0..2] of rank 0, from ranks 2, 2");
}

}  // namespace
}  // namespace areal::proto
