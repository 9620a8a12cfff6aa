// The training world under the loop: how ranks meet, what a checkpoint is, and what the loss of a rank leads to.
#include "tests/unit/train_loop_fixture.h"

namespace areal::proto {
namespace {

// ---- Training world and checkpoints ----

TEST_F(TrainLoopTest, RanksMeetUnderTheFirstTrainingEpochBeforeAnythingElse) {
  loop.start();
  answer_all<ConnectRequest>(ConnectReply{Outcome::kOk, 1});
  const auto reserved = loop.sends<ReservePort>();
  ASSERT_EQ(reserved.size(), 1U);
  EXPECT_EQ(reserved[0].to, NodeId{5});
  answer_all<ReservePort>(PortReserved{1, Outcome::kFailed, 0});  // No port now: asked again later.
  EXPECT_TRUE(loop.sends<JoinTraining>().empty());
  fire(kBackoffTimer);
  answer_all<ReservePort>(PortReserved{1, Outcome::kOk, kPort});
  const auto joins = loop.bodies<port::Send, JoinTraining>();
  ASSERT_EQ(joins.size(), 3U);
  EXPECT_EQ(joins[0].training_epoch, 1U);
  EXPECT_EQ(joins[0].version, 0U);
  EXPECT_EQ(joins[0].port, kPort);
  EXPECT_TRUE(loop.effects<port::StoreGet>().empty());
  const auto sent = loop.sends<JoinTraining>();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(loop.sends<SetVersion>().empty());
    loop.answer(sent[i], TrainingJoined{1, Outcome::kOk, {}});
  }
  EXPECT_EQ(loop.sends<SetVersion>().size(), 1U);
  ASSERT_EQ(loop.notes<port::TrainingWorldChanged>().size(), 1U);
  EXPECT_EQ(loop.notes<port::TrainingWorldChanged>()[0].training_epoch, 1U);
}

TEST_F(TrainLoopTest, RanksThatDoNotMeetEndTheRun) {
  loop.start();
  answer_all<ConnectRequest>(ConnectReply{Outcome::kOk, 1});
  answer_all<ReservePort>(PortReserved{1, Outcome::kOk, kPort});
  loop.answer(loop.sends<JoinTraining>().at(1), TrainingJoined{1, Outcome::kFailed, {}});
  keep();
  EXPECT_EQ(ended.at(0).end, RunEnd::kConnectFailed);
}

// Ranks first, then the values of the slot, and last the key that names the slot; only then the update.
TEST_F(TrainLoopTest, ACheckpointIsWholeBeforeItsInfoNamesItAndBeforeTheUpdate) {
  begin();
  train(1);
  EXPECT_EQ(phases.back(), LoopPhase::kCheckpoint);
  const auto asked = loop.sends<SaveCheckpoint>();
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_EQ(from_record<SaveCheckpoint>(asked[0].body).version, 1U);
  EXPECT_EQ(from_record<SaveCheckpoint>(asked[0].body).slot, 0U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(loop.effects<port::StorePut>().empty());
    loop.answer(asked[i], CheckpointSaved{1, 1, Outcome::kOk, {0, 10 + i}});
  }
  store();
  ASSERT_EQ(puts.size(), 4U);
  EXPECT_EQ(puts[2].value, (Digest128{0, 33}));
  EXPECT_EQ(puts[3].value, (Digest128{1, 0}));                            // Version 1 is in slot 0.
  for (const port::StorePut& put : puts) EXPECT_GE(put.key, 1ULL << 63);  // Versions are the gateway's.
  const auto info = loop.notes<port::CheckpointInfo>();
  ASSERT_EQ(info.size(), 1U);
  EXPECT_EQ(info[0].step, 1U);
  EXPECT_EQ(info[0].accepted, 8);
  EXPECT_FALSE(info[0].restored);
  EXPECT_EQ(loop.tells<PauseAll>().size(), 1U);
  tell(kPauseGateSlot, AllPaused{});
  reply_update(1, Outcome::kOk);
  publish();
  tell(kDrainSlot, BatchCleared{{1}, Outcome::kOk});
  puts.clear();
  train(2);
  EXPECT_EQ((loop.bodies<port::Send, SaveCheckpoint>().at(0).slot), 1U);
  answer_all<SaveCheckpoint>(CheckpointSaved{1, 2, Outcome::kOk, {0, 7}});
  store();
  EXPECT_EQ(puts.at(3).expected, (Digest128{1, 0}));
  EXPECT_EQ(puts.at(3).value, (Digest128{2, 1}));
}

TEST_F(TrainLoopTest, AValueThatNobodyExpectedIsWrittenOver) {
  begin();
  train(1);
  answer_all<SaveCheckpoint>(CheckpointSaved{1, 1, Outcome::kOk, {0, 7}});
  const port::StorePut put = loop.effects<port::StorePut>().at(0);
  loop.feed(port::StoreDone{put.op, Outcome::kMismatch, {8, 8}});
  const port::StorePut again = loop.effects<port::StorePut>().at(0);
  EXPECT_EQ(again.key, put.key);
  EXPECT_EQ(again.expected, (Digest128{8, 8}));
  EXPECT_EQ(again.value, put.value);
  store();
  EXPECT_EQ(loop.tells<PauseAll>().size(), 1U);
}

TEST_F(TrainLoopTest, ACheckpointThatARankCannotWriteIsTriedABoundedNumberOfTimes) {
  use({.save_tries = 2});
  begin();
  train(1);
  loop.answer(loop.sends<SaveCheckpoint>().at(0), CheckpointSaved{1, 1, Outcome::kFailed, {}});
  fire(kBackoffTimer);
  EXPECT_EQ(loop.sends<SaveCheckpoint>().size(), 3U);
  loop.answer(loop.sends<SaveCheckpoint>().at(0), CheckpointSaved{1, 1, Outcome::kFailed, {}});
  keep();
  EXPECT_EQ(ended.at(0).end, RunEnd::kUpdateFailed);
}

TEST_F(TrainLoopTest, CheckpointsComeAsOftenAsAsked) {
  use({.updates = 2, .checkpoint_every = 2});
  begin();
  train(1);
  EXPECT_TRUE(loop.sends<SaveCheckpoint>().empty());
  tell(kPauseGateSlot, AllPaused{});
  reply_update(1, Outcome::kOk);
  publish();
  tell(kDrainSlot, BatchCleared{{1}, Outcome::kOk});
  train(2);
  EXPECT_EQ(loop.sends<SaveCheckpoint>().size(), 3U);
}

// ---- Loss of a rank ----

TEST_F(TrainLoopTest, ARankThatNeverComesBackIsNamedAndEndsTheRun) {
  begin();
  loop.request({5}, kGuardSlot, 1, WorkerExited{{11}, 1});
  keep();
  EXPECT_EQ(loop.sends<Ack>().size(), 1U);
  EXPECT_EQ(phases.back(), LoopPhase::kRecover);
  EXPECT_EQ(loop.tells<PausePool>().size(), 1U);
  EXPECT_TRUE(loop.sends<ReservePort>().empty());
  WaitList waits;
  loop.protocol().list_waits(waits);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].on, NodeId{11});
  EXPECT_TRUE(loop.reload(TrainLoop({.updates = 2}, small_cluster())));
  fire(kRecoverTimer);
  EXPECT_EQ(ended.at(0).end, RunEnd::kRecoveryFailed);
}

TEST_F(TrainLoopTest, NewsOfEnginesOrOfEarlierProcessesAreAcknowledgedAndChangeNothing) {
  begin();
  loop.request({5}, kGuardSlot, 1, WorkerStarted{{11}, 2, 0});  // The first that is heard of it.
  loop.request({5}, kGuardSlot, 2, WorkerExited{{20}, 1});
  EXPECT_EQ(loop.sends<Ack>().size(), 1U);
  loop.request({77}, kGuardSlot, 3, WorkerExited{{11}, 2});
  EXPECT_EQ(loop.notes<port::Refused>().size(), 1U);
  loop.request({5}, kGuardSlot, 4, WorkerExited{{12}, 0});
  EXPECT_EQ(loop.protocol().training_epoch(), 1U);
}

// Its death was never told, but what was sent to the process before is lost with it.
TEST_F(TrainLoopTest, ALaterProcessOfARankMeansThatTheOneBeforeDied) {
  begin();  // Answers came from incarnation 1.
  loop.request({5}, kGuardSlot, 1, WorkerStarted{{11}, 2, 0});
  EXPECT_EQ(loop.sends<ReservePort>().size(), 1U);
}

TEST_F(TrainLoopTest, AnswersThatComeAfterARecoveryBeganAreIgnored) {
  begin();
  tell(kPoolSlot, BatchReady{{1}, 5, 99});
  const auto steps = loop.sends<TrainStep>();
  loop.request({5}, kGuardSlot, 1, WorkerExited{{11}, 1});
  for (const port::Send& step : steps) {
    loop.answer(step, StepDone{0, 1, Outcome::kFailed});
    EXPECT_TRUE(loop.is_silent());
  }
  tell(kPoolSlot, BatchReady{{1}, 5, 99});
  tell(kPauseGateSlot, AllPaused{});
  tell(kDrainSlot, BatchCleared{{1}, Outcome::kFailed});
  tell(kPoolSlot, PoolReset{0});
  fire(kPhaseTimer);
  EXPECT_TRUE(ended.empty());
  loop.request({5}, kGuardSlot, 2, WorkerStarted{{11}, 2, 0});
  answer_all<ReservePort>(PortReserved{2, Outcome::kOk, kPort + 1});
  const auto get = loop.effects<port::StoreGet>().at(0);
  loop.feed(port::StoreDone{get.op, Outcome::kRefused, {}});
  ASSERT_EQ(loop.sends<JoinTraining>().size(), 3U);
  EXPECT_EQ(from_record<JoinTraining>(loop.sends<JoinTraining>()[0].body).training_epoch, 2U);
}

// The ranks that live may know of a death before any guard does.
TEST_F(TrainLoopTest, AStepThatFailedOnALostRankIsRecoveredFrom) {
  begin();
  tell(kPoolSlot, BatchReady{{1}, 5, 99});
  loop.answer(loop.sends<TrainStep>().at(0), StepDone{0, 1, Outcome::kPeerGone});
  keep();
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(phases.back(), LoopPhase::kRecover);
}

TEST_F(TrainLoopTest, AnUpdateThatFailedOnALostRankWaitsForTheNews) {
  use({.lost_tries = 2});
  begin();
  to_update(1);
  for (int i = 0; i < 2; ++i) {
    reply_update(1, Outcome::kPeerGone);
    EXPECT_TRUE(ended.empty());
    fire(kBackoffTimer);
  }
  reply_update(1, Outcome::kPeerGone);
  EXPECT_EQ(ended.at(0).end, RunEnd::kUpdateFailed);
}

}  // namespace
}  // namespace areal::proto
