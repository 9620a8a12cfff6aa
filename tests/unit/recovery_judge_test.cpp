// Judges of recovery, and how all others survive one: versions and steps go back exactly as announced.
#include "sim/check/staleness_judge.h"
#include "tests/unit/delta_trace.h"

namespace areal::sim {
namespace {

using port::FullReason;
using port::LoopPhase;
using port::UpdateMode;

// ---- Checkpoints ----

Digest128 part_digest(Version version, std::uint32_t rank) { return {version, 100 + rank}; }

void save(Trace& trace, Version version, std::uint32_t rank, std::uint32_t slot, Epoch training_epoch = 1) {
  trace.note(kTrain[rank],
             port::CheckpointRank{training_epoch, version, rank, slot, false, part_digest(version, rank)});
}
void write_info(Trace& trace, Version version, std::uint32_t slot, bool restored = false) {
  trace.note(kController, port::CheckpointInfo{1, version, version, slot, restored, 8, {}});
}
void restore(Trace& trace, Version version, std::uint32_t rank, std::uint32_t slot, const Digest128& digest) {
  trace.note(kTrain[rank], port::CheckpointRank{2, version, rank, slot, true, digest});
}
void change_world(Trace& trace, Epoch training_epoch, Version version) {
  trace.note(kController, port::TrainingWorldChanged{training_epoch, version, version});
}

// Versions 1 and 2 are saved, in a slot each.
Trace saved() {
  Trace trace;
  change_world(trace, 1, 0);
  for (Version version = 1; version <= 2; ++version) {
    const auto slot = static_cast<std::uint32_t>(version % 2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      trace.note(kTrain[rank], port::StepTrained{version - 1, version, rank, {}, 1});
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) save(trace, version, rank, slot);
    write_info(trace, version, slot);
  }
  return trace;
}

TEST(RecoveryJudge, CleanRecoveryWakesNobody) {
  Trace trace = saved();
  write_info(trace, 2, 0, true);
  for (std::uint32_t rank = 0; rank < 2; ++rank) restore(trace, 2, rank, 0, part_digest(2, rank));
  change_world(trace, 2, 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) trace.note(kTrain[rank], port::StepTrained{2, 3, rank, {}, 1});
  trace.end();
  EXPECT_EQ(trace.names(), "");
}

TEST(RecoveryJudge, RankThatReadsBackSomethingElse) {
  Trace other_bytes = saved();
  restore(other_bytes, 2, 0, 0, part_digest(2, 0));
  restore(other_bytes, 2, 1, 0, {9, 9});
  EXPECT_EQ(other_bytes.names(), "INV-17");
  EXPECT_TRUE(other_bytes.found(InvariantId::kInv17, kTrain[1], 2));
  EXPECT_FALSE(other_bytes.found(InvariantId::kInv17, kTrain[0]));
  Trace other_version = saved();
  restore(other_version, 1, 0, 0, part_digest(1, 0));
  EXPECT_TRUE(other_version.found(InvariantId::kInv17, kTrain[0], 1));
  Trace unknown;
  restore(unknown, 100, 0, 0, {9, 9});
  EXPECT_EQ(unknown.names(), "") << "written before the trace began";
}

TEST(RecoveryJudge, InformationThatIsReadBackWrongly) {
  Trace trace = saved();
  trace.note(kController, port::CheckpointInfo{1, 2, 2, 0, true, 0, {}});
  EXPECT_EQ(trace.names(), "INV-17");
  EXPECT_TRUE(trace.found(InvariantId::kInv17, kController, 2));
}

// A rank died while the information was written; the write came to its end all the same, and nobody said so.
TEST(RecoveryJudge, InformationThatWasWrittenWhenNobodyWaitedForIt) {
  Trace whole = saved();
  for (std::uint32_t rank = 0; rank < 2; ++rank) save(whole, 3, rank, 1);
  write_info(whole, 3, 1, true);
  change_world(whole, 2, 3);
  EXPECT_EQ(whole.names(), "");
  save(whole, 4, 0, 0, 2);
  EXPECT_EQ(whole.names(), "") << "the information names the other slot now";
  save(whole, 4, 0, 1, 2);
  EXPECT_EQ(whole.names(), "INV-REC-ATOMIC");
  Trace partly = saved();
  save(partly, 3, 0, 1);
  write_info(partly, 3, 1, true);
  EXPECT_EQ(partly.names(), "INV-17");
}

TEST(RecoveryJudge, InformationBeforeAllHaveSaved) {
  Trace trace = saved();
  save(trace, 3, 0, 1);
  write_info(trace, 3, 1);
  EXPECT_EQ(trace.names(), "INV-REC-ATOMIC");
  EXPECT_TRUE(trace.found(InvariantId::kRecAtomic, kController, 3));
  EXPECT_NE(trace.violations().all()[0].message.find("train-1"), std::string::npos);
}

TEST(RecoveryJudge, SlotOverwrittenThatTheInformationNames) {
  Trace trace = saved();
  save(trace, 3, 1, 1);
  EXPECT_EQ(trace.names(), "");
  save(trace, 3, 1, 0);
  EXPECT_EQ(trace.names(), "INV-REC-ATOMIC");
  EXPECT_TRUE(trace.found(InvariantId::kRecAtomic, kTrain[1], 3));
}

TEST(RecoveryJudge, TrainingGoesOnElsewhere) {
  Trace skips = saved();
  change_world(skips, 2, 2);
  skips.note(kTrain[0], port::StepTrained{3, 4, 0, {}, 1});
  EXPECT_EQ(skips.names(), "INV-REC-VERSION");
  EXPECT_TRUE(skips.found(InvariantId::kRecVersion, kTrain[0], 4));
  Trace repeats = saved();
  change_world(repeats, 2, 2);
  repeats.note(kTrain[1], port::StepTrained{1, 2, 1, {}, 1});
  EXPECT_TRUE(repeats.found(InvariantId::kRecVersion, kTrain[1], 2));
  Trace misread = saved();
  write_info(misread, 2, 0, true);
  change_world(misread, 2, 1);
  EXPECT_TRUE(misread.found(InvariantId::kRecVersion, kController, 1));
}

TEST(RecoveryJudge, TrainingEpochThatDoesNotGrow) {
  Trace trace = saved();
  change_world(trace, 1, 2);
  EXPECT_EQ(trace.names(), "INV-REC-EPOCH");
  EXPECT_TRUE(trace.found(InvariantId::kRecEpoch, kController, 2));
}

// ---- Updates after a recovery ----

TEST(RecoveryJudge, UpdatesGoOnFromTheRestoredVersion) {
  DeltaTrace trace;
  trace.update(full_update(1, FullReason::kNotSeeded));
  trace.update({.version = 2});
  trace.update({.version = 3});
  trace.recover(2, 1);
  DeltaSteps again = full_update(1, FullReason::kRecovered);
  again.trains = false;
  trace.update(again);
  trace.update({.version = 2});
  trace.end();
  EXPECT_EQ(trace.names(), "");
}

TEST(RecoveryJudge, PublishedBeyondWhatTrainingCameTo) {
  DeltaTrace trace;
  trace.update(full_update(1, FullReason::kNotSeeded));
  trace.update({.version = 2});
  trace.recover(2, 1);
  DeltaSteps ahead = full_update(2, FullReason::kRecovered);
  ahead.trains = false;
  trace.update(ahead);
  EXPECT_EQ(trace.names(), "INV-REC-VERSION");
  EXPECT_TRUE(trace.found(InvariantId::kRecVersion, kGateway, 2));
}

// Without a recovery that says so no version comes twice, not even under a new pair.
TEST(PairJudge, VersionsGoBackOnlyWhenTrainingDoes) {
  for (const bool recovers : {true, false}) {
    DeltaTrace trace;
    trace.update(full_update(1, FullReason::kNotSeeded));
    trace.update({.version = 2});
    if (recovers) {
      trace.recover(2, 1);
    } else {
      trace.reconnect();
    }
    DeltaSteps again = full_update(1, FullReason::kPeerLost);
    again.trains = false;
    trace.update(again);
    EXPECT_EQ(trace.found(InvariantId::kPairVersion, kGateway, 1), !recovers);
  }
}

TEST(PublishJudge, VersionOfAnEarlierHistoryIsNotPublished) {
  for (const bool published : {true, false}) {
    DeltaTrace trace;
    trace.update(full_update(1, FullReason::kNotSeeded));
    trace.update({.version = 2});
    trace.recover(2, 1);
    DeltaSteps again = full_update(1, FullReason::kRecovered);
    again.trains = false;
    trace.update(again);
    if (published) trace.update({.version = 2});
    trace.note(kController, port::VersionSet{port::Role::kEngine, 1});
    trace.note(kController, port::VersionSet{port::Role::kEngine, 2});
    EXPECT_EQ(trace.found(InvariantId::kInv2, kController, 2), !published);
  }
}

// Until the router is told it may send what it was asked for before.
TEST(RouteJudge, RouterLearnsOfARecovery) {
  for (const bool told : {false, true}) {
    DeltaTrace trace;
    trace.update(full_update(1, FullReason::kNotSeeded));
    trace.update({.version = 2});
    trace.note(kController, port::VersionSet{port::Role::kRouter, 1});
    trace.note(kController, port::VersionSet{port::Role::kRouter, 2});
    change_world(trace, 2, 1);
    if (told) trace.note(kController, port::VersionSet{port::Role::kRouter, 1});
    trace.note(kRouter, port::Routed{SampleId{1}, EngineId{0}, 1});
    EXPECT_EQ(trace.names(), "");
    trace.note(kRouter, port::Routed{SampleId{2}, EngineId{0}, 2});
    EXPECT_EQ(trace.found(InvariantId::kInv9, kRouter, 2), told);
  }
}

// ---- The training loop ----

void enter(Trace& trace, std::uint64_t step, LoopPhase phase) {
  trace.note(kController, port::PhaseEntered{step, phase, step});
}
void pause(Trace& trace, bool on) {
  for (std::uint32_t engine = 0; engine < 2; ++engine) {
    trace.note(kInfer[2 * engine], port::PauseChanged{EngineId{engine}, on, {}, 0});
  }
}
void train(Trace& trace, Version version) {
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    trace.note(kTrain[rank], port::StepTrained{version - 1, version, rank, {}, 1});
  }
}
void set_versions(Trace& trace, Version version) {
  for (const auto role : {port::Role::kTrainer, port::Role::kEngine, port::Role::kRouter}) {
    trace.note(kController, port::VersionSet{role, version});
  }
}

// Steps 0 and 1 in full, with a checkpoint each; then step 2 up to `interrupted`.
Trace interrupted(LoopPhase interrupted) {
  Trace trace;
  start_cluster(trace);
  change_world(trace, 1, 0);
  for (std::uint64_t step = 0; step < 2; ++step) {
    enter(trace, step, LoopPhase::kCollect);
    enter(trace, step, LoopPhase::kTrain);
    train(trace, step + 1);
    enter(trace, step, LoopPhase::kCheckpoint);
    enter(trace, step, LoopPhase::kPauseRollout);
    enter(trace, step, LoopPhase::kPauseGeneration);
    pause(trace, true);
    enter(trace, step, LoopPhase::kUpdate);
    run_update(trace, {.version = step + 1, .pauses = false});
    enter(trace, step, LoopPhase::kContinueGeneration);
    pause(trace, false);
    enter(trace, step, LoopPhase::kSetVersion);
    set_versions(trace, step + 1);
    enter(trace, step, LoopPhase::kClear);
    enter(trace, step, LoopPhase::kResume);
  }
  enter(trace, 2, LoopPhase::kCollect);
  if (interrupted != LoopPhase::kCollect) enter(trace, 2, interrupted);
  enter(trace, 2, LoopPhase::kRecover);
  return trace;
}

TEST(LoopJudge, RecoveryGivesTheEnginesTheRestoredVersion) {
  for (const std::uint64_t step : {0U, 1U}) {  // Of the restored update: that which made it, or the next.
    Trace trace = interrupted(LoopPhase::kTrain);
    change_world(trace, 2, 1);
    enter(trace, step, LoopPhase::kPauseRollout);
    enter(trace, step, LoopPhase::kPauseGeneration);
    pause(trace, true);
    enter(trace, step, LoopPhase::kUpdate);
    trace.note(kGateway, port::PairChanged{1, port::PairState::kBroken, 2});
    enter(trace, step, LoopPhase::kContinueGeneration);
    pause(trace, false);
    enter(trace, step, LoopPhase::kSetVersion);
    set_versions(trace, 1);
    enter(trace, step, LoopPhase::kResume);
    enter(trace, 1, LoopPhase::kCollect);
    enter(trace, 1, LoopPhase::kTrain);
    EXPECT_EQ(trace.names(), "") << step;
    enter(trace, 1, LoopPhase::kPauseRollout);
    enter(trace, 1, LoopPhase::kUpdate);
    EXPECT_TRUE(trace.found(InvariantId::kLoopOrder, kController)) << "nobody trained the step again";
  }
}

TEST(LoopJudge, RecoveryMayGoOnCollecting) {
  for (const LoopPhase phase : {LoopPhase::kCollect, LoopPhase::kTrain, LoopPhase::kPauseRollout, LoopPhase::kClear}) {
    Trace trace = interrupted(phase);
    change_world(trace, 2, 2);
    enter(trace, 2, LoopPhase::kCollect);
    enter(trace, 2, LoopPhase::kTrain);
    enter(trace, 2, LoopPhase::kCheckpoint);
    enter(trace, 2, LoopPhase::kPauseRollout);
    EXPECT_EQ(trace.names(), "") << to_text(phase);
  }
}

TEST(LoopJudge, RecoveryThatLeavesThePauseOutOrGoesElsewhere) {
  Trace unpaused = interrupted(LoopPhase::kTrain);
  change_world(unpaused, 2, 2);
  enter(unpaused, 1, LoopPhase::kUpdate);
  EXPECT_TRUE(unpaused.found(InvariantId::kLoopOrder, kController));
  Trace elsewhere = interrupted(LoopPhase::kTrain);
  change_world(elsewhere, 2, 2);
  enter(elsewhere, 0, LoopPhase::kPauseRollout);
  EXPECT_EQ(elsewhere.names(), "INV-LOOP-MONO");
  Trace unsaid;
  enter(unsaid, 2, LoopPhase::kCollect);
  enter(unsaid, 1, LoopPhase::kCollect);
  EXPECT_EQ(unsaid.names(), "INV-LOOP-MONO");
}

TEST(LoopJudge, CheckpointComesAfterTraining) {
  Trace before;
  enter(before, 0, LoopPhase::kCollect);
  enter(before, 0, LoopPhase::kCheckpoint);
  EXPECT_EQ(before.names(), "") << "a step may be left out";
  enter(before, 0, LoopPhase::kTrain);
  EXPECT_EQ(before.names(), "INV-LOOP-ORDER");
  Trace after;
  enter(after, 0, LoopPhase::kPauseRollout);
  enter(after, 0, LoopPhase::kCheckpoint);
  EXPECT_EQ(after.names(), "INV-LOOP-ORDER");
}

TEST(LoopJudge, VersionsGrowFromTheRestoredOne) {
  for (const Version next : {Version{1}, Version{2}, Version{0}}) {
    Trace trace = interrupted(LoopPhase::kTrain);
    change_world(trace, 2, 1);
    trace.note(kController, port::VersionSet{port::Role::kTrainer, 1});
    trace.note(kGateway, port::UpdateStarted{1, 2, 2, {}, {}});
    trace.note(kGateway, port::VersionPublished{1, 2, 2, {}, {}, 0});
    const auto before = trace.violations().all().size();
    trace.note(kController, port::VersionSet{port::Role::kTrainer, next});
    EXPECT_EQ(trace.violations().all().size() == before, next != 0) << next;
  }
}

// A rank that does not wait until inference has paused goes into collectives that the others will enter much later.
TEST(LoopJudge, RankThatEntersBeforeEnginesWereEverAskedToPause) {
  Trace trace;
  trace.note(kController, port::PhaseEntered{0, LoopPhase::kTrain, 0});
  trace.note(kTrain[1], port::CollectiveEntered{1, 1, 1, 5});
  EXPECT_TRUE(trace.found(InvariantId::kInv6, kTrain[1], 1));
}

TEST(LoopJudge, RankThatEntersBeforeAllHavePaused) {
  for (const bool paused : {true, false}) {
    Trace trace;
    start_cluster(trace);
    enter(trace, 0, LoopPhase::kPauseGeneration);
    trace.note(kInfer[0], port::PauseChanged{EngineId{0}, true, {}, 0});
    trace.note(kInfer[2], port::PauseChanged{EngineId{1}, paused, {}, 0});
    trace.note(kTrain[1], port::CollectiveEntered{1, 1, 1, 5});
    EXPECT_EQ(trace.names(), paused ? "" : "INV-6");
    EXPECT_EQ(trace.found(InvariantId::kInv6, kTrain[1], 1), !paused);
  }
}

// ---- Capacity, sample groups and shards ----

TEST(StalenessJudge, CapacityAfterARecovery) {
  // Version 100, batch 64, staleness 4: 320 with the groups that made it, 6720 without.
  for (const std::int64_t accepted : {6400, 0}) {
    Trace trace;
    change_world(trace, 2, 100);
    const port::Admitted first{SampleGroupId{1}, 100, 0, accepted, 100000, 64, 4};
    EXPECT_EQ(admission_capacity(first), accepted == 0 ? 6720 : 320);
    trace.note(kController, first);
    EXPECT_EQ(trace.names(), accepted == 0 ? "INV-STALE-RECOVER INV-STALE-HEAD" : "");
    EXPECT_EQ(trace.found(InvariantId::kStaleRecover, kController, 100), accepted == 0);
    if (accepted != 0) continue;
    EXPECT_NE(trace.violations().all()[0].message.find("up to 6720"), std::string::npos);
    EXPECT_NE(trace.violations().all()[0].message.find("admit 320"), std::string::npos);
  }
}

TEST(StalenessJudge, AFreshStartCountsFromZero) {
  Trace trace;
  change_world(trace, 1, 0);
  trace.note(kController, port::Admitted{SampleGroupId{1}, 0, 0, 0, 64, 4, 2});
  EXPECT_EQ(trace.names(), "");
}

TEST(TaskJudge, GroupsThatARecoveryVoided) {
  for (const bool recovers : {true, false}) {
    Trace trace;
    trace.note(kController, port::Admitted{SampleGroupId{1}, 0, 0, 0, 64, 4, 2});
    trace.note(kController, port::Admitted{SampleGroupId{2}, 0, 1, 0, 64, 4, 2});
    if (recovers) change_world(trace, 2, 0);
    trace.note(kController, port::Admitted{SampleGroupId{1}, 0, 0, 0, 64, 4, 2});
    EXPECT_EQ(trace.names(), recovers ? "" : "INV-TASK-TERMINAL");
    trace.note(kController, port::GroupFinished{SampleGroupId{1}, true, 1, 0, 0, 0});
    EXPECT_EQ(trace.names(), recovers ? "" : "INV-TASK-TERMINAL");
    trace.note(kController, port::GroupFinished{SampleGroupId{1}, true, 1, 0, 0, 0});
    EXPECT_EQ(trace.names(), "INV-TASK-TERMINAL");
  }
}

TEST(StoreJudge, BatchesThatARecoveryVoided) {
  for (const bool recovers : {true, false}) {
    Trace trace;
    trace.note(kStore, port::ShardStored{ShardId{1}, 10});
    trace.note(kTrain[0], port::ShardFetched{ShardId{1}, TrainBatchId{1}});
    if (recovers) change_world(trace, 2, 0);
    enter(trace, 0, LoopPhase::kResume);
    EXPECT_EQ(trace.found(InvariantId::kRtLeak, kTrain[0]), !recovers);
  }
}

TEST(FenceJudge, ADeltaIsFencedToo) {
  for (const bool fenced : {true, false}) {
    Trace trace;
    trace.effect(kInfer[0], port::JoinGroup{GroupId{3}, port::Backend::kGloo, 0, 6, 100});
    port::StartCompute apply;
    apply.what = port::ComputeKind::kApplyDelta;
    trace.effect(kInfer[0], apply);
    port::ComputeDone done;
    done.what = port::ComputeKind::kFence;
    if (fenced) trace.input(kInfer[0], done);
    port::PostBatch barrier;
    barrier.group = GroupId{3};
    barrier.version = 3;
    trace.effect(kInfer[0], barrier);
    EXPECT_EQ(trace.found(InvariantId::kGlooFence, kInfer[0], 3), !fenced);
  }
}

}  // namespace
}  // namespace areal::sim
