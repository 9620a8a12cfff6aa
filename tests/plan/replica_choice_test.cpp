// Which replica sends: by the reference's round robin, or so that bytes are balanced.
#include "engine/proto/replica_choice.h"

#include <gtest/gtest.h>

#include "engine/proto/coverage.h"
#include "tests/plan/random_layouts.h"

namespace areal::proto {
namespace {

std::vector<std::uint64_t> sent_bytes(const TransferPlan& plan) {
  std::vector<std::uint64_t> bytes;
  for (std::uint32_t rank = plan.world.infer_world; rank < plan.world.world(); ++rank) {
    bytes.push_back(plan.rank(rank).stats().bytes);
  }
  return bytes;
}

// Parameters of random sizes, each whole on every training rank and in every engine.
RC_GTEST_PROP(ReplicaChoice, CopiesOfTheSameParametersDifferByLessThanTheLargest, ()) {
  const auto copies = *rc::gen::inRange(1U, 9U);
  const auto engines = *rc::gen::inRange(1U, 12U);
  const auto sizes = *rc::gen::container<std::vector<std::uint32_t>>(12, rc::gen::inRange(1U, 1000U));
  std::vector<ParameterText> train;
  std::vector<ParameterText> infer;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    ParameterText parameter{"w" + std::to_string(100 + i), {{{0, {0}, {sizes[i]}}}}};
    infer.push_back(parameter);
    for (std::uint32_t rank = 1; rank < copies; ++rank) parameter.replicas.push_back({{rank, {0}, {sizes[i]}}});
    train.push_back(parameter);
  }
  const PlanOptions options{.world = {engines, copies, engines}, .replicas = ReplicaRule::kFewestBytes};
  const MetaSet ours = make_metas(train);
  const MetaSet theirs = make_metas(infer);
  const auto plan = *plan_of(ours, theirs, options);
  RC_ASSERT(!find_coverage_fault(*plan, ShardBook(ours), ShardBook(theirs)).has_value());
  const std::vector<std::uint64_t> bytes = sent_bytes(*plan);
  const auto [least, most] = std::ranges::minmax(bytes);
  RC_ASSERT(most - least <= 4ULL * std::ranges::max(sizes));
}

RC_GTEST_PROP(ReplicaChoice, EachNumberIsServedByOneReplica, ()) {
  const auto senders = *rc::gen::inRange(1U, 9U);
  const auto rule = *rc::gen::element(ReplicaRule::kRoundRobin, ReplicaRule::kFewestBytes);
  ReplicaChoice choice(rule, senders);
  for (int parameter = 0; parameter < 5; ++parameter) {
    const auto served = *rc::gen::inRange<std::uint64_t>(0, 30);
    const auto bytes = *rc::gen::inRange<std::uint64_t>(1, 100);
    choice.next({senders, served}, [&](std::uint32_t replica, auto&& visit) { visit(replica, bytes); });
    std::vector<std::uint32_t> by(served, senders);
    for (std::uint32_t replica = 0; replica < senders; ++replica) {
      choice.each_served(replica, [&](std::uint64_t number) {
        RC_ASSERT(by.at(number) == senders);
        by[number] = replica;
      });
    }
    for (std::uint64_t number = 0; number < served; ++number) RC_ASSERT(by[number] == choice.replica_of(number));
  }
}

// Two engines and eight copies: round robin leaves six idle.
TEST(ReplicaChoice, FewestBytesLetsAllCopiesSend) {
  const config::ModelSpec model = config::model_by_name("tiny").value();
  const MetaSet train = training_metas(model, {.dp = 8}).value();
  const MetaSet infer = inference_metas(model, {.tp = 1}).value();
  const auto idle = [&](ReplicaRule rule) {
    const auto plan = *plan_of(train, infer, {.world = {2, 8, 2}, .replicas = rule});
    const std::vector<std::uint64_t> bytes = sent_bytes(*plan);
    return std::ranges::count(bytes, 0U);
  };
  EXPECT_EQ(idle(ReplicaRule::kRoundRobin), 6);
  EXPECT_EQ(idle(ReplicaRule::kFewestBytes), 0);
}

TEST(ReplicaChoice, EqualLoadsGoToTheLowerNumbers) {
  ReplicaChoice choice(ReplicaRule::kFewestBytes, 3);
  const auto whole = [](std::uint64_t bytes) {
    return [bytes](std::uint32_t replica, auto&& visit) { visit(replica, bytes); };
  };
  choice.next({3, 1}, whole(5));
  EXPECT_EQ(choice.replica_of(0), 0U);
  choice.next({3, 2}, whole(3));
  EXPECT_EQ(choice.replica_of(0), 1U);
  EXPECT_EQ(choice.replica_of(1), 2U);
  choice.next({3, 4}, whole(1));
  EXPECT_EQ(choice.replica_of(3), 1U);
  EXPECT_EQ(choice.load(), (std::vector<std::uint64_t>{6, 5, 4}));
}

}  // namespace
}  // namespace areal::proto
