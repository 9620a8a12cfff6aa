// Who reduces what with whom: windows are cut alike everywhere, and copies agree on every reduction.
#include "engine/proto/reconstruct.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/proto/sharding.h"

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)
using config::ParallelStrategy;

struct Planned {
  config::ModelSpec model;
  MetaSet train;
  ReconstructPlans plans;
};

Planned plans_of(std::string_view title, const ParallelStrategy& train, std::uint64_t window) {
  const Result<config::ModelSpec> model = config::model_by_name(title);
  EXPECT_TRUE(model);
  const Result<MetaSet> metas = training_metas(*model, train);
  EXPECT_TRUE(metas);
  return {*model, *metas, reconstruct_plans(*model, *metas, window)};
}

TEST(ReconstructPlan, ExpertsAreKnownByTheirNameAlone) {
  EXPECT_EQ(replica_kind("model.layers.0.mlp.experts.7.up_proj.weight"), ReplicaKind::kExpert);
  EXPECT_EQ(replica_kind("model.layers.0.mlp.gate.weight"), ReplicaKind::kDense);
  EXPECT_EQ(replica_kind("model.experts_norm.weight"), ReplicaKind::kDense);
}

class ReconstructPlanLayouts : public testing::TestWithParam<ParallelStrategy> {};

INSTANTIATE_TEST_SUITE_P(All, ReconstructPlanLayouts,
                         testing::Values(ParallelStrategy{}, ParallelStrategy{.dp = 4},
                                         ParallelStrategy{.dp = 2, .tp = 2}, ParallelStrategy{.dp = 4, .ep = 4},
                                         ParallelStrategy{.dp = 4, .ep = 2},
                                         ParallelStrategy{.dp = 2, .tp = 2, .pp = 2}));

// If two copies differ in one of these, they wait for each other for ever.
TEST_P(ReconstructPlanLayouts, CopiesPostTheSameReductions) {
  for (const std::uint64_t window : {0ULL, 100'000ULL, 1ULL << 40}) {
    const Planned planned = plans_of("tiny", GetParam(), window);
    const std::vector<ReconstructPlan>& ranks = planned.plans.ranks;
    for (const ReconstructPlan& plan : ranks) {
      EXPECT_EQ(plan.windows.size(), ranks.front().windows.size());
      for (std::size_t kind = 0; kind < kReplicaKinds; ++kind) {
        const ReplicaPlace& place = plan.places[kind];
        std::vector<int> seats(place.world, 0);
        for (const ReconstructPlan& other : ranks) {
          if (other.places[kind].group != place.group) continue;
          ++seats.at(other.places[kind].rank);
          for (std::size_t i = 0; i < plan.windows.size(); ++i) {
            EXPECT_EQ(other.windows[i].shares[kind].hash, plan.windows[i].shares[kind].hash);
            EXPECT_EQ(other.windows[i].shares[kind].parameters, plan.windows[i].shares[kind].parameters);
            EXPECT_EQ(other.windows[i].shares[kind].bytes, plan.windows[i].shares[kind].bytes);
          }
        }
        EXPECT_TRUE(std::ranges::all_of(seats, [](int taken) { return taken == 1; }));
      }
    }
  }
}

TEST_P(ReconstructPlanLayouts, EveryHeldParameterIsInOneWindowAndWindowsFit) {
  constexpr std::uint64_t kWindow = 100'000;
  const Planned planned = plans_of("tiny", GetParam(), kWindow);
  std::uint64_t largest = 0;
  for (const config::Parameter& parameter : planned.model.parameters) {
    largest = std::max(largest, parameter.shape.elements() * 4);
  }
  for (const ReconstructPlan& plan : planned.plans.ranks) {
    std::uint64_t parameters = 0;
    std::uint64_t bytes = 0;
    for (const ReconstructWindow& window : plan.windows) {
      EXPECT_LE(window.bytes(), std::max(kWindow, largest));
      bytes += window.bytes();
      for (const WindowShare& share : window.shares) parameters += share.parameters;
    }
    EXPECT_EQ(parameters, plan.parameters);
    EXPECT_EQ(bytes, plan.elements * 4);
  }
  // In the order of traversal, windows only rise.
  std::uint32_t last = 0;
  for (const std::uint32_t index : planned.model.order) {
    const std::uint32_t window = planned.plans.window_of_name[planned.model.parameters[index].name];
    EXPECT_TRUE(window == last || window == last + 1);
    last = window;
  }
  EXPECT_EQ(last + 1, planned.plans.ranks.front().windows.size());
}

TEST(ReconstructPlan, WindowZeroIsOneParameterAtATime) {
  const Planned planned = plans_of("tiny", {.dp = 2}, 0);
  EXPECT_EQ(planned.plans.ranks.front().windows.size(), planned.model.order.size());
  const Planned all = plans_of("tiny", {.dp = 2}, 1ULL << 40);
  EXPECT_EQ(all.plans.ranks.front().windows.size(), 1U);
}

TEST(ReconstructPlan, OneSetOfCopiesIsOneGroup) {
  const Planned one = plans_of("tiny", {.dp = 4}, 1ULL << 40);
  for (const ReconstructPlan& plan : one.plans.ranks) {
    EXPECT_EQ(plan.places[0].group, plan.places[1].group);
    EXPECT_EQ(plan.windows[0].shares[1].parameters, 0U) << "all go with the only group";
  }
  const Planned two = plans_of("tiny", {.dp = 4, .ep = 2}, 1ULL << 40);
  for (const ReconstructPlan& plan : two.plans.ranks) {
    EXPECT_NE(plan.places[0].group, plan.places[1].group);
    EXPECT_EQ(plan.places[0].world, 4U);
    EXPECT_EQ(plan.places[1].world, 2U);
    EXPECT_GT(plan.windows[0].shares[1].parameters, 0U);
  }
  const Planned alone = plans_of("tiny", {.dp = 4, .ep = 4}, 1ULL << 40);
  for (const ReconstructPlan& plan : alone.plans.ranks) EXPECT_EQ(plan.places[1].world, 1U);
}

}  // namespace
}  // namespace areal::test
