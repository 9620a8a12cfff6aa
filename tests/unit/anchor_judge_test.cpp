// The judge of anchors: which updates must be full is derived from causes, and every other one must be a delta.
#include "tests/unit/delta_trace.h"

namespace areal::sim {
namespace {

using port::FullReason;
using port::UpdateMode;

// A full update to version 1 and deltas up to `version`.
DeltaTrace seeded(Version version = 1, std::uint32_t interval = 0) {
  DeltaTrace trace(interval);
  trace.update(full_update(1, FullReason::kNotSeeded));
  for (Version next = 2; next <= version; ++next) trace.update({.version = next});
  return trace;
}

std::uint64_t measured(const Judges& judges, std::string_view name) {
  for (const Measure& each : judges.measures()) {
    if (each.name == name) return each.value;
  }
  return UINT64_MAX;
}

// 45 updates at interval 20: full at 1, 22 and 43.
TEST(AnchorJudge, IntervalCountsCommittedDeltas) {
  DeltaTrace trace(20);
  for (Version version = 1; version <= 45; ++version) {
    if (version % 21 == 1) {
      trace.update(full_update(version, version == 1 ? FullReason::kNotSeeded : FullReason::kAnchorInterval));
    } else {
      trace.update({.version = version});
    }
  }
  trace.end();
  EXPECT_EQ(trace.names(), "");
  EXPECT_EQ(measured(trace.judges(), "full updates"), 3U);
  EXPECT_EQ(measured(trace.judges(), "deltas"), 42U);
}

TEST(AnchorJudge, FullOneStepEarlyOrLate) {
  DeltaTrace early = seeded(3, 3);
  early.update(full_update(4, FullReason::kAnchorInterval));
  EXPECT_EQ(early.names(), "INV-5 INV-ANCHOR-CAUSE");
  EXPECT_TRUE(early.found(InvariantId::kInv5, kGateway, 4));
  EXPECT_TRUE(early.found(InvariantId::kAnchorCause, kGateway, 4));
  DeltaTrace late = seeded(4, 3);
  EXPECT_EQ(late.names(), "");
  late.update({.version = 5});
  EXPECT_TRUE(late.found(InvariantId::kInv5, kGateway, 5));
  EXPECT_TRUE(late.found(InvariantId::kAnchorCause, kGateway, 5));
  EXPECT_NE(late.violations().all()[0].message.find("; the anchor interval is 3"), std::string::npos);
}

// A full update for another cause begins a new count.
TEST(AnchorJudge, AnyFullUpdateBeginsTheCountAnew) {
  DeltaTrace trace = seeded(3, 3);
  trace.restart(kInfer[0]);
  trace.reconnect();
  trace.update(full_update(4, FullReason::kPeerLost));
  for (Version version = 5; version <= 7; ++version) trace.update({.version = version});
  trace.update(full_update(8, FullReason::kAnchorInterval));
  EXPECT_EQ(trace.names(), "");
}

TEST(AnchorJudge, FullWithoutACause) {
  DeltaTrace trace = seeded(2);
  trace.update(full_update(3, FullReason::kInitialFull));
  EXPECT_EQ(trace.names(), "INV-ANCHOR-CAUSE");
  EXPECT_TRUE(trace.found(InvariantId::kAnchorCause, kGateway, 3));
  EXPECT_NE(trace.violations().all()[0].message.find("although nothing made it so"), std::string::npos);
}

TEST(AnchorJudge, FirstUpdateAsADelta) {
  DeltaTrace trace;
  trace.update({.version = 1});
  EXPECT_TRUE(trace.found(InvariantId::kAnchorCause, kGateway, 1));
}

TEST(AnchorJudge, OptimizerStepsDecide) {
  for (const std::uint64_t steps : {0U, 1U, 2U, 3U}) {
    for (const bool full : {false, true}) {
      DeltaTrace trace = seeded();
      DeltaSteps next = full_update(2, FullReason::kInversionInfeasible);
      if (!full) next = {.version = 2};
      next.optimizer_steps = steps;
      trace.update(next);
      EXPECT_EQ(trace.names(), full == (steps >= 2) ? "" : "INV-ANCHOR-CAUSE") << steps << " " << full;
    }
  }
}

// Two training steps without an update between them are two optimizer steps.
TEST(AnchorJudge, StepsAddUpUntilAnUpdateIsPublished) {
  DeltaTrace trace = seeded();
  trace.train(2);
  trace.update({.version = 3});
  EXPECT_TRUE(trace.found(InvariantId::kAnchorCause, kGateway, 3));
}

TEST(AnchorJudge, AfterAFailedAttemptTheNextIsFull) {
  for (const UpdateMode mode : {UpdateMode::kFull, UpdateMode::kDelta}) {
    DeltaTrace trace = seeded();
    trace.update({.version = 2, .stops = Stops::kAfterVotes});
    DeltaSteps retry = full_update(2, FullReason::kRetry, 2);
    retry.mode = mode;
    retry.trains = false;
    trace.update(retry);
    if (mode == UpdateMode::kFull) {
      EXPECT_EQ(trace.names(), "");
      trace.update({.version = 3});
      EXPECT_EQ(trace.names(), "") << "one full update is enough";
      continue;
    }
    EXPECT_EQ(trace.names(), "INV-DELTA-FAILFULL INV-ANCHOR-CAUSE");
    EXPECT_TRUE(trace.found(InvariantId::kDeltaFailFull, kTrain[0], 2));
    EXPECT_TRUE(trace.found(InvariantId::kDeltaFailFull, kGateway, 2));
  }
}

// Two failed attempts leave the cause standing, whatever reason the first retry had.
TEST(AnchorJudge, CausesStayUntilAnUpdateEndsWell) {
  DeltaTrace trace = seeded();
  trace.update({.version = 2, .stops = Stops::kAfterPayload});
  DeltaSteps retry = full_update(2, FullReason::kRetry, 2);
  retry.trains = false;
  retry.stops = Stops::kAfterVotes;
  trace.update(retry);
  retry.attempt = 3;
  retry.stops = Stops::kNever;
  retry.reason = FullReason::kPeerLost;
  trace.update(retry);
  EXPECT_EQ(trace.names(), "");
}

TEST(AnchorJudge, RestartedRanksAndLostPairs) {
  for (const NodeId node : {kTrain[1], kInfer[3], kGateway}) {
    DeltaTrace trace = seeded(2);
    trace.restart(node);
    trace.update({.version = 3});
    EXPECT_TRUE(trace.found(InvariantId::kAnchorCause, kGateway, 3)) << node.value;
  }
  DeltaTrace router = seeded(2);
  router.restart(kRouter);
  router.update({.version = 3});
  EXPECT_EQ(router.names(), "");
  DeltaTrace pair = seeded(2);
  pair.reconnect();
  pair.update({.version = 3});
  EXPECT_EQ(pair.names(), "INV-ANCHOR-CAUSE");
}

TEST(AnchorJudge, RecoveryEmptiesTheTrackers) {
  for (const bool full : {true, false}) {
    DeltaTrace trace = seeded(3);
    trace.recover(2, 2);
    DeltaSteps next = full_update(2, FullReason::kRecovered);
    if (!full) next = {.version = 2};
    next.trains = false;
    trace.update(next);
    EXPECT_EQ(trace.found(InvariantId::kAnchorCause, kGateway, 2), !full);
    EXPECT_EQ(trace.names().empty(), full);
  }
}

// What comes up while an update runs is a cause of the next one.
TEST(AnchorJudge, RankThatIsLostWhileItsUpdateEndsWell) {
  DeltaTrace trace = seeded(2);
  trace.note(kGateway, port::UpdateStarted{1, 3, 1, UpdateMode::kDelta, FullReason::kNone});
  trace.restart(kInfer[0]);
  trace.note(kGateway, port::UpdateEnded{1, 3, 1, port::Outcome::kOk, {}});
  trace.note(kGateway, port::VersionPublished{1, 3, 1, UpdateMode::kDelta, FullReason::kNone, 0});
  EXPECT_FALSE(trace.found(InvariantId::kAnchorCause, kGateway));
  trace.reconnect();
  trace.update(full_update(4, FullReason::kPeerLost));
  EXPECT_FALSE(trace.found(InvariantId::kAnchorCause, kGateway));
}

TEST(AnchorJudge, ReasonThatFitsNoCause) {
  for (const FullReason reason : {FullReason::kPeerRank, FullReason::kNoDelta, FullReason::kAnchorInterval,
                                  FullReason::kInversionInfeasible, FullReason::kNone}) {
    DeltaTrace trace;
    trace.update(full_update(1, reason));
    EXPECT_TRUE(trace.found(InvariantId::kAnchorCause, kGateway, 1)) << to_text(reason);
  }
}

// An attempt that failed before anybody entered may be tried as either.
TEST(AnchorJudge, AttemptThatNobodyEntered) {
  for (const UpdateMode mode : {UpdateMode::kFull, UpdateMode::kDelta}) {
    DeltaTrace trace = seeded();
    trace.train(2);
    trace.note(kGateway, port::UpdateStarted{1, 2, 1, UpdateMode::kDelta, FullReason::kNone});
    trace.note(kGateway, port::UpdateEnded{1, 2, 1, port::Outcome::kMismatch, kInfer[0]});
    DeltaSteps retry = full_update(2, mode == UpdateMode::kFull ? FullReason::kRetry : FullReason::kNone, 2);
    retry.mode = mode;
    retry.trains = false;
    trace.update(retry);
    EXPECT_EQ(trace.names(), "");
  }
}

TEST(AnchorJudge, FailedReconstructionMayMakeAnUpdateFull) {
  for (const bool fails : {true, false}) {
    DeltaTrace trace = seeded();
    port::ComputeDone inverted;
    inverted.what = port::ComputeKind::kMarkSynced;
    inverted.outcome = fails ? port::Outcome::kFailed : port::Outcome::kOk;
    trace.input(kTrain[0], inverted);
    trace.update(full_update(2, FullReason::kInversionError));
    EXPECT_EQ(trace.names(), fails ? "" : "INV-ANCHOR-CAUSE");
  }
}

// What was acknowledged is not on record then: the next update is full for that reason.
TEST(AnchorJudge, AcknowledgementThatCouldNotBeRecordedMakesTheNextUpdateFull) {
  for (const bool fails : {true, false}) {
    DeltaTrace trace = seeded();
    port::ComputeDone marked;
    marked.what = port::ComputeKind::kMarkSynced;
    marked.outcome = fails ? port::Outcome::kFailed : port::Outcome::kOk;
    trace.input(kTrain[0], marked);
    trace.update(full_update(2, FullReason::kCommitFailed));
    EXPECT_EQ(trace.names(), fails ? "" : "INV-ANCHOR-CAUSE");
  }
}

// Training that begins at the very start moves version 0, and the first version after it has no base.
TEST(AnchorJudge, VersionAfterTheStartIsFullAgain) {
  for (const FullReason reason : {FullReason::kNotSeeded, FullReason::kAnchorInterval}) {
    DeltaTrace trace = seeded();
    trace.note(kController, port::TrainingWorldChanged{2, 0, 0});
    trace.reconnect();
    DeltaSteps start = full_update(0, FullReason::kRecovered);
    start.trains = false;
    trace.update(start);
    trace.update(full_update(1, reason));
    EXPECT_EQ(trace.found(InvariantId::kAnchorCause, kGateway, 1), reason != FullReason::kNotSeeded);
  }
}

TEST(AnchorJudge, OneAnchorForEachFullUpdateAndNoneForADelta) {
  for (const std::uint32_t anchors : {0U, 1U, 2U}) {
    DeltaTrace trace;
    DeltaSteps first = full_update(1, FullReason::kNotSeeded);
    first.anchors = anchors;
    trace.update(first);
    EXPECT_EQ(trace.names(), anchors == 1 ? "" : "INV-ANCHOR-CAUSE") << anchors;
    EXPECT_EQ(trace.found(InvariantId::kAnchorCause, kGateway, 1), anchors != 1);
  }
  DeltaTrace trace = seeded(2);
  trace.note(kGateway, port::AnchorSet{1, 2, 1, FullReason::kNone});
  EXPECT_TRUE(trace.found(InvariantId::kAnchorCause, kGateway, 2));
}

// A repair publishes nothing, and seeds all trackers again.
TEST(AnchorJudge, RepairOfThePublishedVersion) {
  for (const FullReason reason : {FullReason::kPeerLost, FullReason::kAnchorInterval}) {
    DeltaTrace trace = seeded(2, 3);
    trace.restart(kInfer[0]);
    trace.reconnect();
    const Epoch epoch = trace.epoch();
    trace.note(kGateway, port::UpdateStarted{epoch, 2, 1, UpdateMode::kFull, reason});
    trace.note(kGateway, port::UpdateEnded{epoch, 2, 1, port::Outcome::kOk, {}});
    trace.note(kGateway, port::AnchorSet{epoch, 2, 1, reason});
    trace.note(kGateway, port::PairChanged{epoch, port::PairState::kConnected, 2});
    EXPECT_EQ(trace.found(InvariantId::kAnchorCause, kGateway, 2), reason != FullReason::kPeerLost);
  }
}

}  // namespace
}  // namespace areal::sim
