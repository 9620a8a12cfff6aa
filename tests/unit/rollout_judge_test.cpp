// Judges of leases, staleness, the training loop, the store and sample groups, and of stuck runs.
#include "sim/check/staleness_judge.h"
#include "sim/check/stuck.h"
#include "tests/unit/trace_builder.h"

namespace areal::sim {
namespace {

using port::LeaseState;
using port::LoopPhase;

// ---- Ports and processes ----

void lease(Trace& trace, std::uint16_t port, LeaseState state, NodeId holder, Incarnation incarnation) {
  trace.note(kGuard, port::LeaseChanged{HostId{1}, port, state, holder, incarnation});
}

// The guard leases a port for a process and starts it.
Trace running() {
  Trace trace;
  trace.input(kGuard, port::Started{1, 0, 1});
  lease(trace, 500, LeaseState::kLeased, kInfer[0], 0);
  trace.effect(kGuard, port::StartProcess{OpId{1}, kInfer[0], 500});
  trace.input(kGuard, port::ProcessStarted{OpId{1}, kInfer[0], 1, port::Outcome::kOk});
  lease(trace, 500, LeaseState::kBound, kInfer[0], 1);
  trace.note(kGuard, port::ProcessChanged{kInfer[0], 1, true, 500});
  return trace;
}

TEST(LeaseJudge, WholeLifeOfAProcess) {
  Trace trace = running();
  trace.note(kGuard, port::ProcessChanged{kInfer[0], 1, false, 500});
  lease(trace, 500, LeaseState::kReleased, kInfer[0], 1);
  lease(trace, 500, LeaseState::kLeased, kInfer[1], 0);
  lease(trace, 501, LeaseState::kLeased, kGateway, 1);  // A reservation goes back while its holder lives.
  trace.note(kGuard, port::ProcessChanged{kGateway, 1, true, 0});
  lease(trace, 501, LeaseState::kReleased, kGateway, 1);
  trace.end();
  EXPECT_EQ(trace.names(), "");
}

TEST(LeaseJudge, PortWithTwoOwners) {
  Trace trace = running();
  lease(trace, 501, LeaseState::kLeased, kInfer[1], 0);
  EXPECT_EQ(trace.names(), "");
  lease(trace, 500, LeaseState::kLeased, kInfer[1], 0);
  EXPECT_EQ(trace.names(), "INV-10");
  EXPECT_TRUE(trace.found(InvariantId::kInv10, kGuard));
}

TEST(LeaseJudge, PortReleasedBeforeTheExit) {
  Trace trace = running();
  lease(trace, 500, LeaseState::kReleased, kInfer[0], 1);
  EXPECT_EQ(trace.names(), "INV-PORT-RELEASE-AFTER-EXIT");
}

TEST(LeaseJudge, LeaseOfADeadProcessIsLeft) {
  Trace trace = running();
  trace.note(kGuard, port::ProcessChanged{kInfer[0], 1, false, 500});
  Trace cut = trace;
  cut.end(false);
  EXPECT_EQ(cut.names(), "") << "a cut trace has no end to judge";
  trace.end();
  EXPECT_EQ(trace.names(), "INV-11");
  EXPECT_TRUE(trace.found(InvariantId::kInv11, kInfer[0]));
}

TEST(LeaseJudge, ProcessNobodyAccountsFor) {
  Trace trace = running();
  trace.note(kGuard, port::ProcessChanged{NodeId{12}, 1, true, 0});
  trace.end();
  EXPECT_EQ(trace.names(), "INV-11");
  EXPECT_TRUE(trace.found(InvariantId::kInv11, NodeId{12}));
}

TEST(LeaseJudge, SecondIncarnationBesideTheFirst) {
  Trace trace = running();
  trace.note(kGuard, port::ProcessChanged{kInfer[0], 2, true, 500});
  EXPECT_EQ(trace.names(), "INV-11");
}

// ---- Staleness ----

TEST(StalenessJudge, CapacityIsThatOfTheFormula) {
  const auto capacity = [](std::int64_t mc, std::int64_t bs, std::int64_t eta, Version v, std::int64_t accepted) {
    return admission_capacity({SampleGroupId{1}, v, 0, accepted, mc, bs, eta});
  };
  EXPECT_EQ(capacity(10, 4, 2, 0, 0), 10);
  EXPECT_EQ(capacity(100, 4, 2, 0, 0), 12);
  EXPECT_EQ(capacity(100, 4, 2, 5, 0), 32);
  EXPECT_EQ(capacity(100, 8, 0, 5, 0), 48);
  EXPECT_EQ(capacity(32, 16, 2, 1, 14), 32);
  EXPECT_EQ(capacity(0, 0, 0, 0, 0), 1);
  EXPECT_GT(capacity(10, 64, 1'000'000'000'000'000'000, 0, 0), 0) << "no overflow";
}

TEST(StalenessJudge, AdmissionWithoutCapacity) {
  Trace trace;
  trace.note(kController, port::Admitted{SampleGroupId{1}, 0, 7, 4, 64, 4, 2});
  EXPECT_EQ(trace.names(), "");
  trace.note(kController, port::Admitted{SampleGroupId{2}, 0, 8, 4, 64, 4, 2});
  EXPECT_EQ(trace.names(), "INV-STALE-HEAD");
  EXPECT_TRUE(trace.found(InvariantId::kStaleHead, kController, 0));
}

TEST(StalenessJudge, BoundIsANumberUnlessItIsEnforced) {
  for (const bool enforced : {false, true}) {
    JudgeSetup setup = make_setup();
    setup.max_staleness = 2;
    setup.enforce_staleness = enforced;
    Trace trace(setup);
    for (std::uint64_t group = 1; group <= 2; ++group) {
      trace.note(kController, port::Admitted{SampleGroupId{group}, 0, 0, 0, 64, 4, 2});
      trace.note(kController, port::GroupFinished{SampleGroupId{group}, true, 1, 0, 0, 0});
    }
    trace.note(kController, port::GroupConsumed{SampleGroupId{1}, TrainBatchId{1}, 5, 3});
    EXPECT_EQ(trace.names(), "");
    trace.note(kController, port::GroupConsumed{SampleGroupId{2}, TrainBatchId{1}, 5, 2});
    EXPECT_EQ(trace.names(), enforced ? "INV-STALE-BOUND" : "");
    if (enforced) {
      EXPECT_EQ(trace.violations().all()[0].level, InvariantClass::kSafety);
    }
    std::uint64_t greatest = 0;
    for (const Measure& each : trace.judges().measures()) {
      if (each.name == "greatest staleness") greatest = each.value;
    }
    EXPECT_EQ(greatest, 3U);
  }
}

// ---- Training loop ----

void enter(Trace& trace, std::uint64_t step, LoopPhase phase) {
  trace.note(kController, port::PhaseEntered{step, phase, step});
}

// Step 0 up to the update.
Trace trained(bool all_train = true, bool all_pause = true) {
  Trace trace;
  start_cluster(trace);
  enter(trace, 0, LoopPhase::kCollect);
  enter(trace, 0, LoopPhase::kTrain);
  trace.note(kTrain[0], port::StepTrained{0, 1, 0, {}});
  if (all_train) trace.note(kTrain[1], port::StepTrained{0, 1, 1, {}});
  enter(trace, 0, LoopPhase::kPauseRollout);
  enter(trace, 0, LoopPhase::kPauseGeneration);
  for (std::uint32_t engine = 0; engine < (all_pause ? 2U : 1U); ++engine) {
    trace.note(kInfer[2 * engine], port::PauseChanged{EngineId{engine}, true, {}, 0});
  }
  enter(trace, 0, LoopPhase::kUpdate);
  return trace;
}

TEST(LoopJudge, CleanSteps) {
  Trace trace = trained();
  enter(trace, 0, LoopPhase::kUpdate);  // A second try.
  run_update(trace, {.pauses = false});
  enter(trace, 0, LoopPhase::kContinueGeneration);
  for (std::uint32_t engine = 0; engine < 2; ++engine) {
    trace.note(kInfer[2 * engine], port::PauseChanged{EngineId{engine}, false, {}, 0});
  }
  enter(trace, 0, LoopPhase::kSetVersion);
  trace.note(kController, port::VersionSet{port::Role::kTrainer, 1});
  enter(trace, 0, LoopPhase::kClear);
  enter(trace, 0, LoopPhase::kResume);
  trace.note(kController, port::Admitted{SampleGroupId{1}, 1, 0, 0, 64, 4, 2});
  enter(trace, 1, LoopPhase::kDone);
  EXPECT_EQ(trace.names(), "");
}

TEST(LoopJudge, UpdateBeforeAllHaveTrained) {
  const Trace trace = trained(false);
  EXPECT_EQ(trace.names(), "INV-LOOP-ORDER");
  EXPECT_TRUE(trace.found(InvariantId::kLoopOrder, kController));
}

TEST(LoopJudge, UpdateBeforeAllHavePaused) { EXPECT_EQ(trained(true, false).names(), "INV-LOOP-PAUSED"); }

TEST(LoopJudge, EngineContinuesAndWorkIsAdmittedDuringTheUpdate) {
  Trace trace = trained();
  trace.note(kInfer[0], port::PauseChanged{EngineId{0}, false, {}, 0});
  EXPECT_TRUE(trace.found(InvariantId::kLoopPaused, kInfer[0]));
  EXPECT_FALSE(trace.found(InvariantId::kLoopPaused, kController));
  trace.note(kController, port::Admitted{SampleGroupId{1}, 0, 0, 0, 64, 4, 2});
  EXPECT_TRUE(trace.found(InvariantId::kLoopPaused, kController));
}

TEST(LoopJudge, PhasesOutOfOrder) {
  Trace trace = trained();
  enter(trace, 0, LoopPhase::kTrain);
  EXPECT_EQ(trace.names(), "INV-LOOP-ORDER");
  EXPECT_EQ(trace.violations().all()[0].step, 0U);
}

// Collecting, a repair up to its update, with the engines paused or not.
Trace repairing(bool all_pause) {
  Trace trace;
  start_cluster(trace);
  enter(trace, 0, LoopPhase::kCollect);
  enter(trace, 0, LoopPhase::kRepairPause);
  enter(trace, 0, LoopPhase::kRepairPause);  // A second try.
  for (std::uint32_t engine = 0; engine < (all_pause ? 2U : 1U); ++engine) {
    trace.note(kInfer[2 * engine], port::PauseChanged{EngineId{engine}, true, {}, 0});
  }
  enter(trace, 0, LoopPhase::kRepairUpdate);
  return trace;
}

TEST(LoopJudge, ARepairComesBackToItsCollecting) {
  Trace trace = repairing(true);
  enter(trace, 0, LoopPhase::kRepairAnnounce);
  enter(trace, 0, LoopPhase::kCollect);
  trace.note(kController, port::Admitted{SampleGroupId{1}, 0, 0, 0, 64, 4, 2});
  enter(trace, 0, LoopPhase::kRepairPause);
  EXPECT_EQ(trace.names(), "");
}

TEST(LoopJudge, ARepairIsHeldToThePauseToo) {
  EXPECT_EQ(repairing(false).names(), "INV-LOOP-PAUSED");
  Trace trace = repairing(true);
  trace.note(kInfer[0], port::PauseChanged{EngineId{0}, false, {}, 0});
  EXPECT_TRUE(trace.found(InvariantId::kLoopPaused, kInfer[0]));
  trace.note(kController, port::Admitted{SampleGroupId{1}, 0, 0, 0, 64, 4, 2});
  EXPECT_TRUE(trace.found(InvariantId::kLoopPaused, kController));
}

TEST(LoopJudge, ARepairInterruptsNothingButCollectingAndLeavesNothingOut) {
  Trace after_training = trained();
  enter(after_training, 0, LoopPhase::kRepairPause);
  EXPECT_EQ(after_training.names(), "INV-LOOP-ORDER");
  Trace cut_short = repairing(true);
  enter(cut_short, 0, LoopPhase::kCollect);
  EXPECT_EQ(cut_short.names(), "INV-LOOP-ORDER");
  Trace goes_on = repairing(true);
  enter(goes_on, 0, LoopPhase::kTrain);
  EXPECT_EQ(goes_on.names(), "INV-LOOP-ORDER");
  Trace skips;
  start_cluster(skips);
  enter(skips, 0, LoopPhase::kCollect);
  enter(skips, 0, LoopPhase::kRepairUpdate);
  EXPECT_TRUE(skips.found(InvariantId::kLoopOrder, kController));
}

TEST(LoopJudge, TrainerVersionSetAfterAFailedUpdate) {
  Trace trace = trained();
  run_update(trace, {.pauses = false, .publishes = false});
  enter(trace, 0, LoopPhase::kSetVersion);
  trace.note(kController, port::VersionSet{port::Role::kTrainer, 1});
  EXPECT_EQ(trace.names(), "INV-LOOP-ORDER");
  EXPECT_TRUE(trace.found(InvariantId::kLoopOrder, kController, 1));
}

TEST(LoopJudge, StepsAndVersionsThatAreSkipped) {
  Trace trace;
  enter(trace, 0, LoopPhase::kCollect);
  enter(trace, 2, LoopPhase::kCollect);
  EXPECT_EQ(trace.names(), "INV-LOOP-MONO");
  Trace versions;
  start_cluster(versions);
  run_update(versions, {.version = 1});
  run_update(versions, {.version = 2});
  versions.note(kController, port::VersionSet{port::Role::kTrainer, 2});
  EXPECT_EQ(versions.names(), "INV-LOOP-MONO");
  EXPECT_TRUE(versions.found(InvariantId::kLoopMono, kController, 2));
}

TEST(LoopJudge, ControllerThatBeganAgain) {
  Trace trace;
  start_cluster(trace);
  enter(trace, 0, LoopPhase::kCollect);
  enter(trace, 0, LoopPhase::kTrain);
  trace.restart(kController);
  enter(trace, 0, LoopPhase::kCollect);
  EXPECT_EQ(trace.names(), "");
}

// ---- Store ----

// Two shards are stored; each trainer fetches one for batch 1.
Trace fetched() {
  Trace trace;
  for (std::uint64_t node = 1; node <= 11; ++node) trace.input(NodeId{node}, port::Started{1, 0, 1});
  for (std::uint64_t shard = 1; shard <= 2; ++shard) {
    trace.note(kStore, port::ShardStored{ShardId{shard}, 10});
    trace.note(kTrain[shard - 1], port::ShardFetched{ShardId{shard}, TrainBatchId{1}});
  }
  return trace;
}

void drain(Trace& trace, bool train_1_too = true, std::uint64_t train_0_drops = 1) {
  trace.note(kStore, port::ShardsDropped{TrainBatchId{1}, 1, 1});
  trace.note(kStore, port::ShardsDropped{TrainBatchId{1}, 1, 0});
  trace.note(kTrain[0], port::ShardsDropped{TrainBatchId{1}, train_0_drops, 0});
  if (train_1_too) trace.note(kTrain[1], port::ShardsDropped{TrainBatchId{1}, 1, 0});
}

void receipt(Trace& trace) {
  trace.note(kController, port::Receipt{port::ReceiptKind::kDrain, 1, port::Role::kTrainer, 2, 3, {}});
}

TEST(StoreJudge, CleanDrain) {
  Trace trace = fetched();
  drain(trace);
  receipt(trace);
  enter(trace, 0, LoopPhase::kResume);
  trace.note(kStore, port::ShardStored{ShardId{3}, 10});  // Carried over.
  trace.end();
  EXPECT_EQ(trace.names(), "");
}

TEST(StoreJudge, ReceiptWhileAConsumerHoldsShards) {
  Trace trace = fetched();
  drain(trace, false);
  receipt(trace);
  EXPECT_TRUE(trace.found(InvariantId::kRtReceipt, kTrain[1]));
  EXPECT_FALSE(trace.found(InvariantId::kRtReceipt, kTrain[0]));
}

TEST(StoreJudge, ConsumerThatCountsWrongly) {
  Trace trace = fetched();
  drain(trace, true, 0);
  receipt(trace);
  EXPECT_EQ(trace.names(), "INV-14");
  EXPECT_TRUE(trace.found(InvariantId::kInv14, kTrain[0]));
}

TEST(StoreJudge, ShardsLeftAfterTheStep) {
  Trace trace = fetched();
  drain(trace, false);
  enter(trace, 0, LoopPhase::kResume);
  EXPECT_EQ(trace.names(), "INV-RT-LEAK");
  EXPECT_TRUE(trace.found(InvariantId::kRtLeak, kTrain[1]));
}

TEST(StoreJudge, DeadConsumerHoldsNothing) {
  Trace trace = fetched();
  drain(trace, false);
  trace.restart(kTrain[1]);
  receipt(trace);
  enter(trace, 0, LoopPhase::kResume);
  EXPECT_EQ(trace.names(), "");
}

// ---- Sample groups ----

void admit(Trace& trace) { trace.note(kController, port::Admitted{SampleGroupId{1}, 0, 0, 0, 64, 4, 2}); }
void decode(Trace& trace) {
  trace.note(kRouter, port::Routed{SampleId{1}, EngineId{0}, 0});
  trace.note(kInfer[0], port::Decoded{SampleId{1}, EngineId{0}, 0, 5, port::SegmentEnd::kStop, engine_weights(0)});
}
void store(Trace& trace) {
  trace.note(kController,
             port::SegmentStored{SampleId{1}, EngineId{0}, 0, 0, 5, port::SegmentEnd::kStop, engine_weights(0)});
}
void finish(Trace& trace, std::uint64_t tokens = 5, bool accepted = true) {
  trace.note(kController, port::GroupFinished{SampleGroupId{1}, accepted, 2, tokens, 0, 0});
}
void consume(Trace& trace) { trace.note(kController, port::GroupConsumed{SampleGroupId{1}, TrainBatchId{1}, 0, 0}); }

TEST(TaskJudge, CleanGroup) {
  Trace trace;
  start_cluster(trace);
  admit(trace), decode(trace), store(trace), finish(trace), consume(trace);
  trace.end();
  EXPECT_EQ(trace.names(), "");
}

TEST(TaskJudge, SegmentStoredTwice) {
  Trace trace;
  start_cluster(trace);
  admit(trace), decode(trace), store(trace), store(trace);
  EXPECT_EQ(trace.names(), "INV-DISP-CONSERVE");
  EXPECT_TRUE(trace.found(InvariantId::kDispConserve, kController));
}

TEST(TaskJudge, TokensLostBetweenStoreAndGroup) {
  Trace trace;
  start_cluster(trace);
  admit(trace), decode(trace), store(trace), finish(trace, 4);
  EXPECT_EQ(trace.names(), "INV-DISP-CONSERVE");
}

TEST(TaskJudge, GroupThatEndsTwiceOrWasNeverAdmitted) {
  Trace twice;
  admit(twice), finish(twice, 0), finish(twice, 0);
  EXPECT_EQ(twice.names(), "INV-TASK-TERMINAL");
  Trace never;
  finish(never, 0);
  EXPECT_EQ(never.names(), "INV-TASK-TERMINAL");
}

TEST(TaskJudge, GroupConsumedTwiceOrRejected) {
  Trace twice;
  admit(twice), finish(twice, 0), consume(twice), consume(twice);
  EXPECT_EQ(twice.names(), "INV-TASK-TERMINAL");
  Trace rejected;
  admit(rejected), finish(rejected, 0, false), consume(rejected);
  EXPECT_EQ(rejected.names(), "INV-TASK-TERMINAL");
}

// ---- Stuck runs ----

TEST(Stuck, CycleIsSafetyAndNamesItsLowestNode) {
  const JudgeSetup setup = make_setup();
  const std::vector<WaitEdge> edges{{kController, kGateway, "an update"}, {kGateway, kInfer[2], "a commit"},
                                    {kInfer[2], kInfer[1], "a barrier"},  {kInfer[1], kGateway, "an answer"},
                                    {kStore, kStore, "itself"},           {kRouter, {}, "compute"}};
  ASSERT_EQ(find_cycle(edges).size(), 3U);
  const Violation found = make_stuck_violation(edges, setup, {10, {}, 3});
  EXPECT_EQ(found.invariant, InvariantId::kInv7);
  EXPECT_EQ(exit_code(found.level), 1);
  EXPECT_EQ(found.node, kInfer[1]);
  EXPECT_NE(found.message.find("infer-1 waits for an answer from gateway"), std::string::npos);
}

TEST(Stuck, ChainIsLivenessAndNamesWhoDoesNothing) {
  const JudgeSetup setup = make_setup();
  const std::vector<WaitEdge> edges{
      {kController, kController, "a batch"}, {kController, kGateway, "an update"}, {kGateway, kInfer[2], "a commit"}};
  EXPECT_TRUE(find_cycle(edges).empty());
  const Violation found = make_stuck_violation(edges, setup, {10, {}, 3});
  EXPECT_EQ(exit_code(found.level), 3);
  EXPECT_EQ(found.node, kInfer[2]);
  EXPECT_EQ(make_stuck_violation({}, setup, {10, {}, 3}).node, NodeId{});
}

// ---- All judges ----

TEST(Judges, CopyGoesOnAlone) {
  Trace trace;
  start_cluster(trace);
  Trace copy = trace;
  run_update(copy, {.differs = kInfer[3]});
  EXPECT_EQ(copy.names(), "INV-3");
  run_update(trace);
  EXPECT_EQ(trace.names(), "");
}

TEST(Judges, WhatARuleDroppedDidNotHappen) {
  Trace trace;
  trace.dropped_note(kRouter, port::VersionSet{port::Role::kRouter, 9});
  EXPECT_EQ(trace.names(), "");
}

TEST(Judges, SayWhatTheyCouldNotSee) {
  Trace trace;
  const auto sees = [&](const std::string& line) {
    const auto blind = trace.judges().blind();
    return std::ranges::find(blind, line) == blind.end();
  };
  EXPECT_FALSE(sees("staleness: no admitted in the trace"));
  admit(trace);
  EXPECT_TRUE(sees("staleness: no admitted in the trace"));
  EXPECT_FALSE(sees("staleness: no group_consumed in the trace"));
}

TEST(Judges, SameViolationTwiceIsKeptOnce) {
  Trace trace;
  trace.note(kRouter, port::VersionSet{port::Role::kRouter, 9});
  const auto before = trace.violations().all().size();
  trace.note(kRouter, port::VersionSet{port::Role::kRouter, 9});
  EXPECT_EQ(trace.violations().all().size(), before);
  EXPECT_GT(trace.violations().repeated(), 0U);
}

}  // namespace
}  // namespace areal::sim
