// The training loop: its order, and that no failure leads to a version that the engines do not hold.
#include "tests/unit/train_loop_fixture.h"

namespace areal::proto {
namespace {

TEST_F(TrainLoopTest, StepsFollowTheOrderOfTheTrainingLoop) {
  begin();
  run_step(1);
  run_step(2);
  end();
  const std::vector<LoopPhase> step = {
      LoopPhase::kCollect,         LoopPhase::kTrain,  LoopPhase::kCheckpoint,         LoopPhase::kPauseRollout,
      LoopPhase::kPauseGeneration, LoopPhase::kUpdate, LoopPhase::kContinueGeneration, LoopPhase::kSetVersion,
      LoopPhase::kClear,           LoopPhase::kResume};
  std::vector<LoopPhase> expected = step;
  expected.insert(expected.end(), step.begin(), step.end());
  expected.push_back(LoopPhase::kDone);
  EXPECT_EQ(phases, expected);
  ASSERT_EQ(set.size(), 7U);  // The router's 0, then actor, rollout and router for each version.
  for (const std::size_t i : {std::size_t{1}, std::size_t{4}}) {
    EXPECT_EQ(set[i].role, Role::kTrainer);
    EXPECT_EQ(set[i + 1].role, Role::kEngine);
    EXPECT_EQ(set[i + 2].role, Role::kRouter);
    EXPECT_EQ(set[i].version, i / 3 + 1);
  }
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].end, RunEnd::kCompleted);
  EXPECT_EQ(ended[0].version, 2U);
  EXPECT_TRUE(loop.reload(TrainLoop({.updates = 2}, small_cluster())));
}

TEST_F(TrainLoopTest, ThePoolIsToldVersionZeroAndResumedBeforeTheFirstBatch) {
  begin();
  EXPECT_EQ(loop.tells<PoolVersion>().size(), 1U);
  EXPECT_EQ(loop.tells<ResumePool>().size(), 1U);
  ASSERT_EQ(loop.tells<WantBatch>().size(), 1U);
  EXPECT_EQ(loop.tells<WantBatch>()[0].batch, TrainBatchId{1});
}

TEST_F(TrainLoopTest, ShardsGoRoundRobinOverTheDataHeads) {
  begin();
  tell(kPoolSlot, BatchReady{{1}, 5, 99});
  const auto steps = loop.bodies<port::Send, TrainStep>();
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].shards, 3U);
  EXPECT_EQ(steps[1].shards, 0U);
  EXPECT_EQ(steps[2].shards, 2U);
  EXPECT_EQ(steps[2].seed, 99U);
  EXPECT_EQ(steps[2].version, 1U);
}

TEST_F(TrainLoopTest, ConnectIsTriedABoundedNumberOfTimes) {
  use({.connect_tries = 2});
  loop.start();
  answer_all<ConnectRequest>(ConnectReply{Outcome::kRefused, 0});
  EXPECT_TRUE(ended.empty());
  fire(kBackoffTimer);
  answer_all<ConnectRequest>(ConnectReply{Outcome::kRefused, 0});
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].end, RunEnd::kConnectFailed);
}

// The gateway answers that the update failed. Rollouts must not be labelled with weights that no engine holds.
TEST_F(TrainLoopTest, AFailedUpdateIsNotPublishedAndGenerationStaysPaused) {
  begin();
  to_update(1);
  reply_update(1, Outcome::kFailed);
  EXPECT_TRUE(loop.tells<ContinueAll>().empty());
  EXPECT_TRUE(loop.tells<ResumePool>().empty());
  EXPECT_TRUE(loop.sends<SetVersion>().empty());
  EXPECT_EQ(set.size(), 1U);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].end, RunEnd::kUpdateFailed);
  EXPECT_EQ(ended[0].version, 0U);
}

TEST_F(TrainLoopTest, ALoopThatPublishesWhateverCameOutIsSeenToDoSo) {
  use({}, [](Outcome) { return UpdateVerdict::kPublish; });
  begin();
  to_update(1);
  reply_update(1, Outcome::kFailed);
  publish();
  EXPECT_EQ(set.size(), 4U);
}

TEST_F(TrainLoopTest, ANewUpdateRequestFollowsAFailedOneAsOftenAsAllowed) {
  use({.update_retries = 1});
  begin();
  to_update(1);
  const RequestId first = loop.sends<UpdateRequest>().at(0).request;
  reply_update(1, Outcome::kPeerGone);
  EXPECT_TRUE(ended.empty());
  EXPECT_TRUE(loop.tells<ContinueAll>().empty());
  fire(kBackoffTimer);
  EXPECT_NE(loop.sends<UpdateRequest>().at(0).request, first);
  reply_update(1, Outcome::kOk);
  publish();
  EXPECT_EQ(set.back().version, 1U);
}

TEST_F(TrainLoopTest, AReplyForAnotherVersionDoesNotPublish) {
  begin();
  to_update(1);
  reply_update(2, Outcome::kOk);
  EXPECT_EQ(set.size(), 1U);
  EXPECT_EQ(ended.at(0).end, RunEnd::kUpdateFailed);
}

// The gateway's answer is lost: the same request is asked again, so that the gateway can know it.
TEST_F(TrainLoopTest, ALostUpdateReplyAsksTheSameRequestAgain) {
  begin();
  to_update(1);
  const port::Send first = loop.sends<UpdateRequest>().at(0);
  fire({(1ULL << 32) + (first.request.value & 0xFFFFFFFF)});
  const auto again = loop.sends<UpdateRequest>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].request, first.request);
  EXPECT_EQ(again[0].body, first.body);
  reply_update(1, Outcome::kOk);
  EXPECT_EQ(loop.tells<ContinueAll>().size(), 1U);
  loop.answer(first, UpdateReply{1, Outcome::kFailed, 1, UpdateMode::kFull, FullReason::kNone, 0});
  EXPECT_TRUE(loop.is_silent());  // A second answer to a request that is done.
}

// One engine of two did not pause: the update does not start, the pool goes on, and it is tried again.
TEST_F(TrainLoopTest, AFailedPauseStartsNoUpdateAndIsTriedABoundedNumberOfTimes) {
  use({.pause_tries = 2});
  begin();
  collect_and_train(1);
  tell(kPauseGateSlot, AllPaused{Outcome::kTimedOut});
  EXPECT_TRUE(loop.sends<UpdateRequest>().empty());
  EXPECT_EQ(loop.tells<ResumePool>().size(), 1U);
  fire(kBackoffTimer);
  EXPECT_EQ(loop.tells<PausePool>().size(), 1U);
  EXPECT_EQ(loop.tells<PauseAll>().size(), 1U);
  tell(kPauseGateSlot, AllPaused{Outcome::kTimedOut});
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].end, RunEnd::kUpdateFailed);
  EXPECT_TRUE(loop.tells<ResumePool>().empty());
}

TEST_F(TrainLoopTest, WithoutPauseTheGateIsNeverAsked) {
  use({.updates = 1, .pause_around_update = false});
  begin();
  collect_and_train(1);
  EXPECT_EQ(loop.tells<PausePool>().size(), 1U);
  EXPECT_TRUE(loop.tells<PauseAll>().empty());
  reply_update(1, Outcome::kOk);
  EXPECT_TRUE(loop.tells<ContinueAll>().empty());
  EXPECT_EQ(loop.sends<SetVersion>().size(), 3U);
}

// A version is set everywhere or the run ends: one engine that never answers must not leave the others ahead unnoticed.
TEST_F(TrainLoopTest, SetVersionIsAllOrNothing) {
  use({.calls = {.tries = 1}});
  begin();
  to_update(1);
  reply_update(1, Outcome::kOk);
  tell(kPauseGateSlot, AllContinued{});
  answer_all<SetVersion>(Ack{});
  const auto engines = loop.sends<SetVersion>();
  ASSERT_EQ(engines.size(), 2U);
  EXPECT_EQ(engines[0].to, NodeId{20});
  EXPECT_EQ(engines[1].to, NodeId{22});
  loop.answer(engines[0], Ack{});
  EXPECT_TRUE(loop.is_silent() || loop.sends<SetVersion>().empty());
  fire({(1ULL << 32) + (engines[1].request.value & 0xFFFFFFFF)});
  EXPECT_EQ(ended.at(0).end, RunEnd::kUpdateFailed);
  EXPECT_EQ(set.back().role, Role::kTrainer);
}

TEST_F(TrainLoopTest, AFailedStepEndsTheRun) {
  begin();
  tell(kPoolSlot, BatchReady{{1}, 5, 99});
  const auto steps = loop.sends<TrainStep>();
  loop.answer(steps.at(1), StepDone{0, 1, Outcome::kFailed});
  keep();
  EXPECT_EQ(ended.at(0).end, RunEnd::kUpdateFailed);
  loop.answer(steps.at(0), StepDone{0, 1, Outcome::kOk});
  EXPECT_TRUE(loop.is_silent());
}

TEST_F(TrainLoopTest, AFailedClearIsTriedOnceMore) {
  begin();
  to_update(1);
  reply_update(1, Outcome::kOk);
  publish();
  tell(kDrainSlot, BatchCleared{{1}, Outcome::kFailed});
  EXPECT_EQ(loop.tells<ClearBatch>().size(), 1U);
  tell(kDrainSlot, BatchCleared{{1}, Outcome::kFailed});
  EXPECT_EQ(ended.at(0).end, RunEnd::kUpdateFailed);
}

// ---- Repair ----

TEST_F(TrainLoopTest, EnginesThatLostThePublishedVersionAreRepairedWhileABatchIsCollected) {
  begin();
  run_step(1);
  phases.clear(), set.clear();
  loses(1);
  EXPECT_EQ(loop.sends<Ack>().size(), 1U);
  EXPECT_EQ(loop.tells<PausePool>().size(), 1U);
  EXPECT_EQ(loop.tells<PauseAll>().size(), 1U);
  tell(kPoolSlot, BatchReady{{2}, 5, 99});  // Asked for again below.
  EXPECT_TRUE(loop.sends<TrainStep>().empty());
  tell(kPauseGateSlot, AllPaused{});
  ASSERT_EQ((loop.bodies<port::Send, UpdateRequest>().size()), 1U);
  EXPECT_EQ((loop.bodies<port::Send, UpdateRequest>()[0].version), 1U);
  EXPECT_TRUE(loop.reload(TrainLoop({.updates = 2}, small_cluster())));
  reply_update(1, Outcome::kOk);
  publish();
  EXPECT_EQ(loop.tells<ResumePool>().size(), 1U);
  ASSERT_EQ(loop.tells<WantBatch>().size(), 1U);
  EXPECT_EQ(loop.tells<WantBatch>()[0].batch, TrainBatchId{2});
  EXPECT_EQ(phases, (std::vector{LoopPhase::kRepairPause, LoopPhase::kRepairUpdate, LoopPhase::kRepairAnnounce,
                                 LoopPhase::kCollect}));
  ASSERT_EQ(set.size(), 3U);
  for (const port::VersionSet& each : set) EXPECT_EQ(each.version, 1U);
  run_step(2);
  end();
  EXPECT_EQ(ended.at(0).end, RunEnd::kCompleted);
  EXPECT_EQ(ended.at(0).version, 2U);
}

TEST_F(TrainLoopTest, NothingIsRepairedBeforeTheFirstVersionNorInAnUpdateThatIsNear) {
  begin();
  loses(0);
  EXPECT_TRUE(loop.tells<PausePool>().empty());
  run_step(1);
  collect_and_train(2);
  loses(1);
  EXPECT_EQ(loop.sends<Ack>().size(), 1U);
  EXPECT_TRUE(loop.tells<PauseAll>().empty());
  tell(kPauseGateSlot, AllPaused{});
  EXPECT_EQ((loop.bodies<port::Send, UpdateRequest>().at(0).version), 2U);
}

// No update is near then: the step would collect with whom is left, or with nobody.
TEST_F(TrainLoopTest, WhatWasLostAfterAnUpdateIsRepairedOnceCollectingBegins) {
  begin();
  to_update(1);
  reply_update(1, Outcome::kOk);
  loses(1);
  EXPECT_TRUE(loop.tells<PauseAll>().empty());
  publish();
  tell(kDrainSlot, BatchCleared{{1}, Outcome::kOk});
  EXPECT_EQ(loop.tells<PauseAll>().size(), 1U);
  EXPECT_EQ(phases.back(), LoopPhase::kRepairPause);
}

TEST_F(TrainLoopTest, ARepairThatFailsEndsTheRunAndStrangersAskForNone) {
  begin();
  run_step(1);
  loop.request(NodeId{77}, kGatewaySlot, 900, EnginesLost{1});
  EXPECT_EQ(loop.notes<port::Refused>().size(), 1U);
  EXPECT_TRUE(loop.tells<PauseAll>().empty());
  loses(1);
  tell(kPauseGateSlot, AllPaused{});
  reply_update(1, Outcome::kFailed);
  EXPECT_EQ(ended.at(0).end, RunEnd::kUpdateFailed);
  EXPECT_TRUE(loop.tells<ResumePool>().empty());
}

TEST_F(TrainLoopTest, AnswersOutOfPlaceAreRefusedAndChangeNothing) {
  begin();
  const Digest128 before = state_digest(loop.protocol());
  tell(kPoolSlot, BatchReady{{7}, 5, 99});
  EXPECT_EQ(loop.notes<port::Refused>().size(), 1U);
  tell(kPauseGateSlot, AllPaused{});
  tell(kPauseGateSlot, AllContinued{});
  tell(kDrainSlot, BatchCleared{{1}, Outcome::kOk});
  fire(kBackoffTimer);
  EXPECT_EQ(state_digest(loop.protocol()), before);
}

TEST_F(TrainLoopTest, APartOfTheControllerThatNeverAnswersEndsTheRun) {
  begin();
  fire(kPhaseTimer);
  EXPECT_EQ(ended.at(0).end, RunEnd::kUpdateFailed);
  fire(kPhaseTimer);
  EXPECT_TRUE(loop.is_silent());
}

}  // namespace
}  // namespace areal::proto
