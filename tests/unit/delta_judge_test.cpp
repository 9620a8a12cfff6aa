// Judges of deltas: trackers, bases, rounds, windows and gradients; each finds what was planted, and nothing else does.
#include "sim/check/course.h"
#include "tests/unit/delta_trace.h"

namespace areal::sim {
namespace {

using port::FullReason;
using port::UpdateMode;

// A full update to version 1, then one delta to version 2, in which `steps` goes wrong.
DeltaTrace second(DeltaSteps steps = {}) {
  DeltaTrace trace;
  trace.update(full_update(1, FullReason::kNotSeeded));
  steps.version = 2;
  trace.update(steps);
  return trace;
}

TEST(DeltaTrace, CleanUpdatesWakeNobody) {
  DeltaTrace trace = second();
  trace.update({.version = 3, .optimizer_steps = 0});
  trace.update({.version = 4, .stops = Stops::kAfterPayload});
  DeltaSteps retry = full_update(4, FullReason::kRetry, 2);
  retry.trains = false;
  trace.update(retry);
  trace.update({.version = 5});
  trace.end();
  EXPECT_EQ(trace.names(), "") << trace.violations().all()[0].message;
}

// Judges of deltas say nothing, and miss nothing, where deltas are off.
TEST(DeltaTrace, NobodyLooksForDeltasWhereTheyAreOff) {
  Trace trace;
  trace.note(kTrain[0], port::TrackerMoved{0, 1, 1, UpdateMode::kDelta, 7, 3, 2, FullReason::kNone});
  EXPECT_EQ(trace.names(), "");
  for (const std::string& line : trace.judges().blind()) EXPECT_EQ(line.find("tracker:"), std::string::npos);
}

// ---- Courses ----

Course course(std::uint64_t node, std::vector<std::uint64_t> marks, bool over = false) {
  return {NodeId{node}, std::move(marks), over, node};
}

TEST(Courses, WhoIsOnTheWayFitsWhoIsAhead) {
  EXPECT_TRUE(fit(course(1, {1, 2}), course(2, {1, 2, 3})));
  EXPECT_FALSE(fit(course(1, {1, 2}, true), course(2, {1, 2, 3})));
  EXPECT_FALSE(fit(course(1, {1, 3}), course(2, {1, 2, 3})));
  EXPECT_TRUE(fit(course(1, {}, false), course(2, {}, true)));
}

TEST(Courses, TheOddOneIsWhoDiffersFromMostThatDisagree) {
  const std::vector<Course> courses{course(1, {1}, true), course(2, {1, 2}), course(3, {1, 2}),
                                    course(4, {1}),       course(5, {}),     course(6, {})};
  const OddOnes odd = find_odd_ones(courses);
  ASSERT_EQ(odd.found.size(), 1U);
  EXPECT_EQ(odd.found[0]->node, NodeId{1});
  EXPECT_EQ(odd.rule->marks.size(), 2U);
  const std::vector<Course> two{course(1, {1}, true), course(2, {1, 2})};
  EXPECT_EQ(find_odd_ones(two).found.at(0)->node, NodeId{1}) << "in a tie who did more is right";
  const std::vector<Course> agreed{course(1, {1}), course(2, {1, 2})};
  EXPECT_EQ(find_odd_ones(agreed).rule, nullptr);
}

// ---- Trackers ----

TEST(TrackerJudge, MovesBeforeTheBarrier) {
  const DeltaTrace trace = second({.moves_early = kTrain[1]});
  EXPECT_EQ(trace.names(), "INV-DELTA-COMMIT");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaCommit, kTrain[1], 2));
  EXPECT_FALSE(trace.found(InvariantId::kDeltaCommit, kTrain[0]));
}

TEST(TrackerJudge, AFailedAttemptThatCounts) {
  const DeltaTrace trace = second({.stops = Stops::kAfterPayload, .moves_early = kTrain[0]});
  EXPECT_EQ(trace.names(), "INV-DELTA-COMMIT INV-5");
  EXPECT_TRUE(trace.found(InvariantId::kInv5, kTrain[0], 2));
  EXPECT_FALSE(trace.found(InvariantId::kInv5, kTrain[1]));
}

TEST(TrackerJudge, OneDeltaCountedTwice) {
  const DeltaTrace trace = second({.moves_twice = kTrain[0]});
  EXPECT_EQ(trace.names(), "INV-DELTA-COMMIT");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaCommit, kTrain[0], 2));
}

TEST(TrackerJudge, VoteFromAnotherBase) {
  const DeltaTrace trace = second({.votes_stale = kTrain[1]});
  EXPECT_TRUE(trace.found(InvariantId::kDeltaCommit, kTrain[1], 2));
  EXPECT_FALSE(trace.found(InvariantId::kDeltaCommit, kTrain[0]));
}

// A tracker that is told to ask for a full update stays where it is.
TEST(TrackerJudge, AskingForAFullUpdateIsNoMove) {
  for (const Version base : {Version{2}, Version{3}}) {
    DeltaTrace trace = second();
    trace.note(kTrain[0], port::TrackerMoved{0, 1, 1, UpdateMode::kDelta, base, 1, 0, FullReason::kCommitFailed});
    EXPECT_EQ(trace.names(), base == 2 ? "" : "INV-DELTA-COMMIT");
  }
}

TEST(TrackerJudge, DeltaWithoutABaseAfterARestart) {
  DeltaTrace trace = second();
  trace.restart(kTrain[1]);
  trace.note(kTrain[1], port::TrackerMoved{1, 1, 1, UpdateMode::kDelta, 3, 2, 0, FullReason::kNone});
  EXPECT_TRUE(trace.found(InvariantId::kDeltaCommit, kTrain[1], 3));
}

TEST(TrackerJudge, MoreDeltasThanTheIntervalAllows) {
  DeltaTrace trace(1);
  trace.update(full_update(1, FullReason::kNotSeeded));
  trace.update({.version = 2});
  EXPECT_EQ(trace.names(), "");
  trace.update({.version = 3});
  EXPECT_TRUE(trace.found(InvariantId::kInv5, kTrain[0], 3));
  EXPECT_TRUE(trace.found(InvariantId::kInv5, kTrain[1], 3));
}

// ---- Bases ----

TEST(BaseJudge, DeltaOverARestartedOrRefusedOrOlderRank) {
  for (const int how : {0, 1, 2, 3}) {
    DeltaTrace trace = second();
    const EngineId engine{1};
    if (how == 1) trace.restart(kInfer[2]);
    if (how == 2) trace.note(kInfer[2], port::WeightsState{engine, 0, port::ServeState::kQuarantined, 2, {}});
    if (how == 3) trace.note(kInfer[2], port::WeightsState{engine, 0, port::ServeState::kServing, 1, {}});
    trace.update({.version = 3});
    EXPECT_EQ(trace.found(InvariantId::kInv4, kInfer[2], 3), how != 0) << how;
    EXPECT_FALSE(trace.found(InvariantId::kInv4, kInfer[3])) << how;
    EXPECT_FALSE(trace.found(InvariantId::kInv4, kInfer[0])) << how;
  }
}

TEST(BaseJudge, DeltaOverWeightsAsLoaded) {
  DeltaTrace trace;
  trace.update({.version = 1});
  EXPECT_TRUE(trace.found(InvariantId::kInv4, kInfer[0], 1));
}

// ---- Rounds ----

TEST(RoundsJudge, RankThatLeavesOutADtype) {
  const DeltaTrace trace = second({.stops = Stops::kAfterPayload, .skips_pass = kTrain[0]});
  EXPECT_TRUE(trace.found(InvariantId::kDeltaDtypeRounds, kTrain[0], 2));
  EXPECT_TRUE(trace.found(InvariantId::kInv6, kTrain[0], 2));
  EXPECT_FALSE(trace.found(InvariantId::kInv6, kTrain[1]));
  EXPECT_FALSE(trace.found(InvariantId::kDeltaDtypeRounds, kInfer[0]));
}

TEST(RoundsJudge, RankThatComesToTheOtherMode) {
  const DeltaTrace trace = second({.votes_other = kTrain[1]});
  EXPECT_EQ(trace.names(), "INV-DELTA-UNANIMOUS");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaUnanimous, kTrain[1], 2));
}

TEST(RoundsJudge, RankThatRunsDensePassesToo) {
  const DeltaTrace trace = second({.stops = Stops::kAfterPayload, .runs_dense = kInfer[1]});
  EXPECT_TRUE(trace.found(InvariantId::kDeltaUnanimous, kInfer[1], 2));
  EXPECT_FALSE(trace.found(InvariantId::kDeltaUnanimous, kInfer[0]));
}

TEST(RoundsJudge, DataThatDoNotFollowTheirCounts) {
  const DeltaTrace trace = second({.miscounts = kInfer[3]});
  EXPECT_EQ(trace.names(), "INV-DELTA-NNZ-SLOTS");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaNnzSlots, kInfer[3], 2));
}

TEST(GroupJudge, ReductionsAreNoVotes) {
  for (const port::BatchKind kind : {port::BatchKind::kReduce, port::BatchKind::kMax}) {
    Trace trace;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      trace.effect(kTrain[rank], port::JoinGroup{GroupId{2}, port::Backend::kNccl, rank, 2, 100});
    }
    port::PostBatch batch;
    batch.group = GroupId{2};
    batch.kind = kind;
    for (const NodeId node : kTrain) trace.effect(node, batch);
    EXPECT_EQ(trace.names(), kind == port::BatchKind::kReduce ? "" : "INV-GLOO-CTRL");
  }
}

TEST(GroupJudge, ReductionsOfOtherWindowsDoNotMeet) {
  Trace trace;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    trace.effect(kTrain[rank], port::JoinGroup{GroupId{2}, port::Backend::kNccl, rank, 2, 100});
  }
  port::PostBatch batch;
  batch.group = GroupId{2};
  batch.kind = port::BatchKind::kReduce;
  batch.version = 4;
  trace.effect(kTrain[0], batch);
  batch.part = 1;
  trace.effect(kTrain[1], batch);
  EXPECT_EQ(trace.names(), "INV-6");
  EXPECT_TRUE(trace.found(InvariantId::kInv6, kTrain[1], 4));
}

// ---- Windows ----

TEST(WindowJudge, RankThatStopsEarly) {
  const DeltaTrace trace = second({.stops = Stops::kAfterVotes, .stops_windows = kTrain[0]});
  EXPECT_EQ(trace.names(), "INV-DELTA-COLL-COUNT INV-6");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaCollCount, kTrain[0], 2));
  EXPECT_FALSE(trace.found(InvariantId::kDeltaCollCount, kTrain[1]));
}

TEST(WindowJudge, ReductionsThatAreNotTwoAParameter) {
  const DeltaTrace trace = second({.odd_reductions = kTrain[1]});
  EXPECT_EQ(trace.names(), "INV-6 INV-DELTA-COLL-COUNT");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaCollCount, kTrain[1], 2));
  EXPECT_FALSE(trace.found(InvariantId::kDeltaCollCount, kTrain[0]));
}

TEST(WindowJudge, WindowHandedOnWhileReductionsArePending) {
  const DeltaTrace trace = second({.hurries = kTrain[1]});
  EXPECT_EQ(trace.names(), "INV-DELTA-QUIET-YIELD");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaQuietYield, kTrain[1], 2));
}

TEST(WindowJudge, ChangedElementsThatAreLeftOut) {
  const DeltaTrace trace = second({.misses = kTrain[0]});
  EXPECT_EQ(trace.names(), "INV-DELTA-SUPERSET");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaSuperset, kTrain[0], 2));
}

// What a sender exports covers what a delta leaves where it is.
TEST(BytesJudge, EngineThatADeltaLeavesBehind) {
  const DeltaTrace trace = second({.keeps_old = kInfer[3]});
  EXPECT_EQ(trace.names(), "INV-3");
  EXPECT_TRUE(trace.found(InvariantId::kInv3, kInfer[3], 2));
}

// ---- Gradients ----

TEST(GradientJudge, MemoryThatDoesNotComeBack) {
  const DeltaTrace trace = second({.keeps_nothing = kTrain[1]});
  EXPECT_EQ(trace.names(), "INV-DELTA-GRADS");
  EXPECT_TRUE(trace.found(InvariantId::kDeltaGrads, kTrain[1], 2));
  EXPECT_FALSE(trace.found(InvariantId::kDeltaGrads, kTrain[0]));
}

TEST(GradientJudge, TrainingWithoutMemoryAfterAFailedUpdate) {
  for (const bool back : {true, false}) {
    DeltaTrace trace = second();
    trace.note(kTrain[0], port::GradientsChanged{0, false});
    if (back) trace.note(kTrain[0], port::GradientsChanged{0, true});
    port::StartCompute start;
    start.what = port::ComputeKind::kGradients;
    trace.effect(kTrain[0], start);
    EXPECT_EQ(trace.found(InvariantId::kDeltaGrads, kTrain[0]), !back);
  }
}

// ---- Steps ----

// A rank without gradients that leaves the norm out ends the step; the others wait for it.
TEST(StepJudge, RankThatLeavesTheNormOut) {
  for (const bool skips : {false, true}) {
    Trace trace;
    const GroupId world{(std::uint64_t{2} << 32) | 1};
    port::PostBatch norm;
    norm.group = world;
    norm.kind = port::BatchKind::kReduce;
    trace.effect(kTrain[0], norm);
    if (!skips) trace.effect(kTrain[1], norm);
    trace.note(kTrain[1], port::StepTrained{4, 5, 1, {}, 1});
    if (!skips) trace.note(kTrain[0], port::StepTrained{4, 5, 0, {}, 1});
    EXPECT_EQ(trace.names(), skips ? "INV-6" : "");  // At once: nobody else may ever end it.
    trace.effect(kTrain[0], port::AbortGroup{world});
    EXPECT_EQ(trace.names(), skips ? "INV-6" : "");
    EXPECT_EQ(trace.found(InvariantId::kInv6, kTrain[1], 5), skips);
  }
}

// It may be faster than the first one that posts, also in a training world of its own.
TEST(StepJudge, RankThatEndsTheStepBeforeAnybodyPosted) {
  for (const Epoch epoch : {1U, 2U}) {
    Trace trace;
    port::PostBatch norm;
    norm.kind = port::BatchKind::kReduce;
    for (Epoch world = 1; world < epoch; ++world) {
      norm.group = {(std::uint64_t{2} << 32) | world};
      for (const NodeId rank : {kTrain[0], kTrain[1]}) trace.effect(rank, norm);
      trace.note(kController, port::TrainingWorldChanged{world + 1, 4, 4});
    }
    EXPECT_EQ(trace.names(), "");
    trace.note(kTrain[1], port::StepTrained{4, 5, 1, {}, 1});
    norm.group = {(std::uint64_t{2} << 32) | epoch};
    trace.effect(kTrain[0], norm);
    EXPECT_TRUE(trace.found(InvariantId::kInv6, kTrain[1], 5));
  }
}

}  // namespace
}  // namespace areal::sim
