// The training loop: its order, and that no failure leads to a version that the engines do not hold.
#include "engine/proto/train_loop.h"

#include <gtest/gtest.h>

#include "tests/unit/effects.h"

namespace areal::proto {
namespace {

using port::LoopPhase;
using port::RunEnd;
using test::Driven;

constexpr TimerId kBackoffTimer{1};
constexpr TimerId kPhaseTimer{2};
constexpr TimerId kRecoverTimer{3};
constexpr std::uint16_t kPort = 900;

ClusterMap small_cluster() {
  ClusterMap cluster;
  cluster.trainers = {{10}, {11}, {12}};
  cluster.data_heads = {0, 2};
  cluster.engine_ranks = {{20}, {21}, {22}, {23}};
  cluster.engines = 2;
  cluster.engine_world = 2;
  cluster.gateway = {3};
  cluster.controller = {1};
  cluster.router = {4};
  cluster.guards = {{5}};
  return cluster;
}

// Drives the loop from answer to answer and keeps all phases, sent kinds and published versions.
class TrainLoopTest : public ::testing::Test {
 protected:
  void use(const TrainLoopOptions& options, AfterUpdate after = publish_only_when_ok) {
    loop = Driven<TrainLoop>(TrainLoop(options, small_cluster(), after));
  }
  void keep() {
    for (const auto& note : loop.notes<port::PhaseEntered>()) phases.push_back(note.phase);
    for (const auto& note : loop.notes<port::VersionSet>()) set.push_back(note);
    for (const auto& note : loop.notes<port::RunEnded>()) ended.push_back(note);
  }
  template <RecordType Asked, RecordType Body>
  void answer_all(const Body& body) {
    const auto asked = loop.sends<Asked>();
    ASSERT_FALSE(asked.empty()) << Asked::kName;
    for (const port::Send& send : asked) loop.answer(send, body), keep();
  }
  template <RecordType Body>
  void tell(SlotId from, const Body& body) {
    loop.tell(from, body);
    keep();
  }
  void fire(TimerId timer) {
    loop.fire(timer);
    keep();
  }
  void begin() {
    loop.start();
    answer_all<ConnectRequest>(ConnectReply{Outcome::kOk, 1});
    answer_all<ReservePort>(PortReserved{1, Outcome::kOk, kPort});
    answer_all<JoinTraining>(TrainingJoined{1, Outcome::kOk, {}});
    answer_all<SetVersion>(Ack{});
  }
  void train(Version version) {
    tell(kPoolSlot, BatchReady{{version}, 5, 99});
    answer_all<TrainStep>(StepDone{version - 1, version, Outcome::kOk});
  }
  void collect_and_train(Version version) {
    train(version);
    if (loop.sends<SaveCheckpoint>().empty()) return;
    answer_all<SaveCheckpoint>(CheckpointSaved{1, version, Outcome::kOk, {0, version}});
    store();
  }
  // The store does what it is asked, one after the other.
  void store() {
    while (!loop.effects<port::StorePut>().empty()) {
      const port::StorePut put = loop.effects<port::StorePut>()[0];
      puts.push_back(put);
      loop.feed(port::StoreDone{put.op, Outcome::kOk, put.value});
      keep();
    }
  }
  void to_update(Version version) {
    collect_and_train(version);
    tell(kPauseGateSlot, AllPaused{});
  }
  void reply_update(Version version, Outcome outcome) {
    answer_all<UpdateRequest>(UpdateReply{version, outcome, 1, UpdateMode::kFull, FullReason::kNone, 0});
  }
  void loses(Version version) {
    loop.request({3}, kGatewaySlot, ++last, EnginesLost{version});
    keep();
  }
  void publish() {
    tell(kPauseGateSlot, AllContinued{});
    publish_rest();
  }
  void publish_rest() {
    answer_all<SetVersion>(Ack{});  // Trainers; then those they lead to.
    answer_all<SetVersion>(Ack{});
    answer_all<SetVersion>(Ack{});
  }
  // The ranks leave their group; then the gateway and the guard answer.
  void end() {
    answer_all<LeaveTraining>(Ack{});
    const auto returned = loop.sends<ReturnPort>();
    ASSERT_EQ(returned.size(), 1U);
    answer_all<DisconnectRequest>(Ack{});
    EXPECT_TRUE(ended.empty());
    loop.answer(returned[0], Ack{});
    keep();
  }
  void run_step(Version version) {
    to_update(version);
    reply_update(version, Outcome::kOk);
    publish();
    tell(kDrainSlot, BatchCleared{{version}, Outcome::kOk});
  }

  Driven<TrainLoop> loop{TrainLoop({.updates = 2}, small_cluster())};
  std::uint64_t last = 0;
  std::vector<LoopPhase> phases;
  std::vector<port::VersionSet> set;
  std::vector<port::RunEnded> ended;
  std::vector<port::StorePut> puts;
};

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
