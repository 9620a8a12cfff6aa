// The rollout pool: how many groups it admits, what becomes of their samples, and which batches come of them.
#include "engine/proto/rollout_pool.h"

#include <gtest/gtest.h>

#include "tests/unit/effects.h"
#include "tests/unit/rollout_cluster.h"

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)

constexpr TimerId kRouteRetry{1};

RolloutPoolOptions small_options() {
  RolloutPoolOptions options;
  options.limits = {8, 2, 0};
  options.samples = 1;
  options.max_new_tokens = 100;
  options.tries = 2;
  return options;
}

class RolloutPoolTest : public testing::Test {
 protected:
  RolloutPoolTest() { begin(small_options()); }

  void begin(const RolloutPoolOptions& options, Version version = 0) {
    pool = Driven<RolloutPool>(RolloutPool(options, rollout_cluster(2)));
    pool.start();
    EXPECT_TRUE(pool.is_silent());
    pool.tell(kTrainLoopSlot, PoolVersion{version});
  }
  std::vector<port::Send> routes() const { return pool.sends<RouteRequest>(); }
  std::vector<port::Send> generates() const { return pool.sends<GenerateRequest>(); }
  // The generation that the answer to `route` leads to.
  port::Send routed(const port::Send& route, std::uint64_t engine = 0, Version version = 0) {
    const SampleId sample = from_record<RouteRequest>(route.body).sample;
    pool.answer(route, RouteReply{sample, Outcome::kOk, EngineId{engine}, version});
    return generates().at(0);
  }
  void refuse(const port::Send& route) { pool.answer(route, RouteReply{{}, Outcome::kRefused, {}, 0}); }
  void made(const port::Send& generate, SegmentEnd end, std::uint64_t tokens, Version version = 0) {
    const SampleId sample = from_record<GenerateRequest>(generate.body).sample;
    pool.answer(generate, GenerateReply{sample, end, tokens, version, Digest128{1, version}});
  }
  void score(OpId op, bool accepted) {
    pool.feed(port::ComputeDone{op, port::ComputeKind::kReward, Outcome::kOk, 0, accepted ? 1U : 0U, 0, {}});
  }
  // All the way from its route to a shard in the store.
  void complete(const port::Send& route, Version version = 0) {
    made(routed(route, 0, version), SegmentEnd::kStop, 10, version);
    score(pool.effects<port::StartCompute>().at(0).op, true);
    pool.answer(pool.sends<PutShard>().at(0), Ack{});
  }

  Driven<RolloutPool> pool{RolloutPool(small_options(), rollout_cluster(2))};
};

// ---- Admission ----

TEST_F(RolloutPoolTest, AdmitsWhatTheFormulaLets) {  // TC-SM-01, TC-RP-04
  struct Case {
    StalenessLimits limits;
    std::size_t admitted;
  };
  for (const Case& c : {Case{{10, 4, 2}, 10}, Case{{100, 32, 10}, 100}, Case{{100, 4, 2}, 12}, Case{{0, 0, 0}, 1},
                        Case{{32, 16, 2}, 32}, Case{{100, 8, 2}, 24}}) {
    RolloutPoolOptions options = small_options();
    options.limits = c.limits;
    begin(options);
    EXPECT_EQ(pool.notes<port::Admitted>().size(), c.admitted);
    EXPECT_EQ(routes().size(), c.admitted);
  }
}

TEST_F(RolloutPoolTest, TheNumbersOfADecisionAreThoseBeforeIt) {
  const auto admitted = [&] {
    pool.tell(kTrainLoopSlot, PoolVersion{1});
    return pool.notes<port::Admitted>();
  }();
  ASSERT_EQ(admitted.size(), 2U);
  EXPECT_EQ(admitted[0].running, 2);
  EXPECT_EQ(admitted[1].running, 3);
  EXPECT_EQ(admitted[1].version, 1U);
}

TEST_F(RolloutPoolTest, ARecoveredRunStartsWithTheCapacityOfAFreshOne) {  // TC-SM-04, TC-FI-10, H35
  for (const Version version : {0U, 5U, 10U, 50U}) {
    RolloutPoolOptions options = small_options();
    options.limits = {1000, 16, 2};
    begin(options, version);
    EXPECT_EQ(pool.notes<port::Admitted>().size(), 48U);
  }
}

TEST_F(RolloutPoolTest, ARejectionGivesItsSlotBackAndAnAcceptanceDoesNot) {  // TC-SM-02
  const auto first = routes();
  ASSERT_EQ(first.size(), 2U);
  complete(first[0]);
  EXPECT_TRUE(pool.notes<port::Admitted>().empty());
  made(routed(first[1]), SegmentEnd::kStop, 10);
  score(pool.effects<port::StartCompute>().at(0).op, false);
  EXPECT_FALSE(pool.notes<port::GroupFinished>().at(0).accepted);
  EXPECT_EQ(pool.notes<port::Admitted>().size(), 1U);
}

TEST_F(RolloutPoolTest, AnOlderVersionIsRefused) {
  pool.tell(kTrainLoopSlot, PoolVersion{3});
  pool.tell(kTrainLoopSlot, PoolVersion{2});
  EXPECT_EQ(pool.notes<port::Refused>().at(0).reason, Refusal::kVersionOrder);
  EXPECT_EQ(pool.protocol().staleness().version(), 3);
}

// ---- Samples ----

TEST_F(RolloutPoolTest, TheLabelIsTheServedVersionNotThePinnedOne) {  // H08
  made(routed(routes()[0], 1, 0), SegmentEnd::kStop, 10, 1);
  const auto stored = pool.notes<port::SegmentStored>();
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].pinned, 0U);
  EXPECT_EQ(stored[0].label, 1U);
  EXPECT_EQ(stored[0].engine.value, 1U);
}

TEST_F(RolloutPoolTest, AnAbortKeepsItsTokensAndAsksForTheRest) {
  made(routed(routes()[0]), SegmentEnd::kAborted, 30);
  const port::Send again = routed(routes().at(0), 1, 1);
  const auto request = from_record<GenerateRequest>(again.body);
  EXPECT_EQ(request.produced, 30U);
  EXPECT_EQ(request.budget, 70U);
  made(again, SegmentEnd::kLength, 70, 1);
  EXPECT_EQ(pool.effects<port::StartCompute>().size(), 1U);
  score(pool.effects<port::StartCompute>()[0].op, true);
  const auto finished = pool.notes<port::GroupFinished>();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].tokens, 100U);
  EXPECT_EQ(finished[0].oldest, 0U);
  EXPECT_EQ(finished[0].newest, 1U);
}

TEST_F(RolloutPoolTest, AnAbortWithTheWholeBudgetUsedIsAnEnd) {
  made(routed(routes()[0]), SegmentEnd::kAborted, 100);
  EXPECT_EQ(pool.effects<port::StartCompute>().size(), 1U);
}

TEST_F(RolloutPoolTest, WhatNoEngineTakesIsRoutedAgainByOneSharedTimer) {
  const auto sent = routes();
  refuse(sent[0]);
  EXPECT_EQ(pool.effects<port::ArmTimer>().size(), 1U);
  made(routed(sent[1]), SegmentEnd::kFailed, 0);
  EXPECT_TRUE(pool.effects<port::ArmTimer>().empty());
  EXPECT_TRUE(pool.notes<port::SegmentStored>().empty());
  pool.fire(kRouteRetry);
  EXPECT_EQ(routes().size(), 2U);
}

// A stall in which no engine is eligible must not be a storm of requests.
TEST_F(RolloutPoolTest, AskingAgainInVainBecomesRareUntilAnEngineTakesSomething) {
  const auto delay_after_refusal = [&] {
    const auto sent = routes();
    refuse(sent.at(0));
    const Duration delay = pool.effects<port::ArmTimer>().at(0).after;
    for (std::size_t i = 1; i < sent.size(); ++i) refuse(sent[i]);
    return delay;
  };
  std::vector<std::int64_t> seconds;
  for (int round = 0; round < 9; ++round) {
    seconds.push_back(delay_after_refusal().ns / 1'000'000'000);
    pool.fire(kRouteRetry);
  }
  EXPECT_EQ(seconds, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 64, 64}));
  const auto sent = routes();
  routed(sent.at(0));
  refuse(sent.at(1));
  EXPECT_EQ(pool.effects<port::ArmTimer>().at(0).after, Duration{1'000'000'000});
}

TEST_F(RolloutPoolTest, AGenerationThatIsGivenUpIsRoutedAgain) {
  pool.answer(routes()[0], RouteReply{SampleId{1}, Outcome::kOk, EngineId{0}, 0});
  const TimerId timer = pool.effects<port::ArmTimer>().at(0).timer;
  const port::Send given_up = generates()[0];
  pool.fire(timer);
  EXPECT_EQ(generates().size(), 1U);
  pool.fire(timer);
  pool.fire(kRouteRetry);
  EXPECT_EQ(routes().size(), 1U);
  made(given_up, SegmentEnd::kStop, 10);  // Late: nobody waits for it any more.
  EXPECT_TRUE(pool.is_silent());
}

TEST_F(RolloutPoolTest, SegmentsOfAFrozenRequestAreStoredWithTheirOwnLabels) {
  const port::Send generate = routed(routes()[0]);
  pool.request(server_node(0), kServerSlot, 1, SegmentReport{SampleId{1}, 30, 0, {}});
  EXPECT_EQ(pool.notes<port::SegmentStored>().at(0).end, SegmentEnd::kFrozen);
  EXPECT_EQ(pool.sends<Ack>().size(), 1U);
  pool.request(server_node(0), kServerSlot, 1, SegmentReport{SampleId{1}, 30, 0, {}});
  EXPECT_TRUE(pool.notes<port::SegmentStored>().empty());
  made(generate, SegmentEnd::kStop, 5, 1);
  EXPECT_EQ(pool.notes<port::SegmentStored>().at(0).label, 1U);
}

TEST_F(RolloutPoolTest, TokensOfAnEngineThatDoesNotServeTheSampleAreRefused) {
  routed(routes()[0], 0);
  pool.request(server_node(1), kServerSlot, 1, SegmentReport{SampleId{1}, 30, 0, {}});
  EXPECT_EQ(pool.notes<port::Refused>().size(), 1U);
  EXPECT_EQ(pool.sends<Ack>().size(), 1U);
  EXPECT_TRUE(pool.notes<port::SegmentStored>().empty());
}

TEST_F(RolloutPoolTest, MoreTokensThanTheBudgetAreRefused) {
  made(routed(routes()[0]), SegmentEnd::kStop, 101);
  EXPECT_TRUE(pool.notes<port::SegmentStored>().empty());
  EXPECT_EQ(pool.notes<port::Refused>().size(), 1U);
}

// ---- Pause ----

TEST_F(RolloutPoolTest, WhilePausedNothingIsSentAndNothingIsLost) {
  const auto sent = routes();
  const port::Send generate = routed(sent[0]);
  const TimerId timer = pool.effects<port::ArmTimer>().at(0).timer;
  pool.tell(kTrainLoopSlot, PausePool{});
  pool.fire(timer);
  EXPECT_TRUE(pool.is_silent());  // Not even asked again.
  pool.answer(sent[1], RouteReply{SampleId{2}, Outcome::kOk, EngineId{0}, 0});
  EXPECT_TRUE(generates().empty());
  pool.tell(kTrainLoopSlot, PoolVersion{1});
  EXPECT_TRUE(pool.notes<port::Admitted>().empty());
  made(generate, SegmentEnd::kAborted, 10);
  EXPECT_EQ(pool.notes<port::SegmentStored>().size(), 1U);
  EXPECT_TRUE(routes().empty());
  pool.tell(kTrainLoopSlot, ResumePool{});
  EXPECT_EQ(routes().size(), 4U);  // Both samples, and two groups more under version 1.
}

TEST_F(RolloutPoolTest, ARequestThatBecameLateInAPauseIsAskedAgainOnResume) {
  pool.answer(routes()[0], RouteReply{SampleId{1}, Outcome::kOk, EngineId{0}, 0});
  const TimerId timer = pool.effects<port::ArmTimer>().at(0).timer;
  pool.tell(kTrainLoopSlot, PausePool{});
  pool.fire(timer);
  pool.tell(kTrainLoopSlot, ResumePool{});
  EXPECT_EQ(generates().size(), 1U);
}

// ---- Batches ----

TEST_F(RolloutPoolTest, ABatchTakesTheGroupsThatBecameReadyFirst) {
  RolloutPoolOptions options = small_options();
  options.limits = {8, 2, 1};
  begin(options);
  const auto sent = routes();
  ASSERT_EQ(sent.size(), 4U);
  for (const std::size_t index : {3U, 1U, 0U}) complete(sent[index]);
  pool.tell(kTrainLoopSlot, WantBatch{TrainBatchId{7}, 0});
  const auto consumed = pool.notes<port::GroupConsumed>();
  ASSERT_EQ(consumed.size(), 2U);
  EXPECT_EQ(consumed[0].group.value, 4U);
  EXPECT_EQ(consumed[1].group.value, 2U);
  EXPECT_EQ(pool.tells<DrainShard>().size(), 2U);
  const auto assigned = pool.sends<AssignShard>();
  ASSERT_EQ(assigned.size(), 2U);
  EXPECT_EQ(assigned[0].to, trainer_node(0));
  EXPECT_EQ(assigned[1].to, trainer_node(1));
  EXPECT_EQ(assigned[1].to_slot, kTrainRankSlot);
  pool.answer(assigned[1], Ack{});
  EXPECT_TRUE(pool.tells<BatchReady>().empty());
  pool.answer(assigned[0], Ack{});
  ASSERT_EQ(pool.tells<BatchReady>().size(), 1U);
  EXPECT_EQ(pool.tells<BatchReady>()[0].groups, 2U);
  EXPECT_NE(pool.tells<BatchReady>()[0].digest, 0U);
}

TEST_F(RolloutPoolTest, ABatchThatIsWantedEarlyComesWhenItsGroupsAreReady) {
  const auto sent = routes();
  pool.tell(kTrainLoopSlot, WantBatch{TrainBatchId{7}, 0});
  EXPECT_TRUE(pool.is_silent());
  complete(sent[0]);
  EXPECT_TRUE(pool.notes<port::GroupConsumed>().empty());
  complete(sent[1]);
  EXPECT_EQ(pool.notes<port::GroupConsumed>().size(), 2U);
}

TEST_F(RolloutPoolTest, ABatchIsDeliveredAgainOnlyWhenItWasDelivered) {
  const auto sent = routes();
  pool.tell(kTrainLoopSlot, WantBatch{TrainBatchId{7}, 0});
  pool.tell(kTrainLoopSlot, WantBatch{TrainBatchId{8}, 1});
  EXPECT_EQ(pool.notes<port::Refused>().at(0).reason, Refusal::kBusy);
  complete(sent[0]);
  complete(sent[1]);
  for (const port::Send& send : pool.sends<AssignShard>()) pool.answer(send, Ack{});
  const auto ready = pool.tells<BatchReady>();
  ASSERT_EQ(ready.size(), 1U);
  pool.tell(kTrainLoopSlot, WantBatch{TrainBatchId{7}, 0});
  ASSERT_EQ(pool.tells<BatchReady>().size(), 1U);
  EXPECT_EQ(pool.tells<BatchReady>()[0].digest, ready[0].digest);
}

TEST_F(RolloutPoolTest, AShardThatTheStoreDoesNotConfirmIsPutAnew) {
  made(routed(routes()[0]), SegmentEnd::kStop, 10);
  score(pool.effects<port::StartCompute>().at(0).op, true);
  const TimerId timer = pool.effects<port::ArmTimer>().at(0).timer;
  const auto put = from_record<PutShard>(pool.sends<PutShard>().at(0).body);
  EXPECT_EQ(put.bytes, 160U);
  pool.fire(timer);
  pool.fire(timer);
  ASSERT_EQ(pool.sends<PutShard>().size(), 1U);
  EXPECT_EQ(pool.sends<PutShard>()[0].body, to_record(put));
}

TEST_F(RolloutPoolTest, APoolThatBeganAgainUsesNoNameTwice) {
  pool = Driven<RolloutPool>(RolloutPool(small_options(), rollout_cluster(2)));
  pool.start(2);
  pool.tell(kTrainLoopSlot, PoolVersion{0});
  EXPECT_GT(pool.notes<port::Admitted>().at(0).group.value, 1ULL << 32);
}

// ---- Recovery ----

TEST_F(RolloutPoolTest, ABatchWantedUnderALaterTrainingEpochIsAssignedAgain) {
  const auto sent = routes();
  pool.tell(kTrainLoopSlot, WantBatch{TrainBatchId{7}, 0, 1});
  complete(sent[0]);
  complete(sent[1]);
  const auto assigned = pool.sends<AssignShard>();
  pool.answer(assigned.at(0), Ack{});
  pool.tell(kTrainLoopSlot, WantBatch{TrainBatchId{7}, 0, 2});
  const auto again = pool.sends<AssignShard>();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].body, assigned[0].body);
  EXPECT_EQ(again[0].to, assigned[0].to);
  EXPECT_TRUE(pool.notes<port::GroupConsumed>().empty());  // They were consumed once.
  pool.answer(assigned[1], Ack{});                         // Late.
  EXPECT_TRUE(pool.is_silent());
  pool.answer(again[0], Ack{});
  pool.answer(again[1], Ack{});
  EXPECT_EQ(pool.tells<BatchReady>().size(), 1U);
  pool.tell(kTrainLoopSlot, WantBatch{TrainBatchId{7}, 0, 2});
  EXPECT_TRUE(pool.sends<AssignShard>().empty());
  EXPECT_EQ(pool.tells<BatchReady>().size(), 1U);
}

// Every admitted group ends once; no shard stays behind; the first capacity is that of a fresh start (TC-FI-10).
TEST_F(RolloutPoolTest, AResetVoidsAllWorkAndLosesNothingFromTheBooks) {
  RolloutPoolOptions options = small_options();
  options.limits = {8, 2, 1};
  begin(options);
  const auto sent = routes();
  ASSERT_EQ(sent.size(), 4U);
  complete(sent[0]);  // Ready.
  made(routed(sent[1]), SegmentEnd::kStop, 10);
  score(pool.effects<port::StartCompute>().at(0).op, true);  // Being stored.
  const port::Send put = pool.sends<PutShard>().at(0);
  made(routed(sent[2]), SegmentEnd::kStop, 10);  // Being scored.
  const OpId scoring = pool.effects<port::StartCompute>().at(0).op;
  const port::Send generating = routed(sent[3]);
  pool.request(server_node(0), kServerSlot, 1, SegmentReport{SampleId{4}, 30, 0, {}});
  pool.tell(kTrainLoopSlot, PausePool{});
  pool.tell(kTrainLoopSlot, ResetPool{0, TrainBatchId{70}});
  const auto finished = pool.notes<port::GroupFinished>();
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_FALSE(finished[0].accepted);
  EXPECT_EQ(finished[0].tokens, 10U);
  EXPECT_EQ(finished[1].tokens, 30U);
  EXPECT_TRUE(pool.tells<PoolReset>().empty());  // A put that comes after the drop would stay for ever.
  EXPECT_TRUE(pool.reload(RolloutPool(options, rollout_cluster(2))));
  pool.answer(put, Ack{});
  const auto voided = pool.tells<DrainShard>();
  ASSERT_EQ(voided.size(), 2U);
  EXPECT_EQ(voided[0].batch, TrainBatchId{70});
  EXPECT_EQ(pool.tells<PoolReset>().size(), 1U);
  EXPECT_TRUE(pool.protocol().groups().empty());
  EXPECT_EQ(pool.protocol().staleness().counters().running, 0);
  EXPECT_EQ(pool.protocol().staleness().counters().accepted, 0);
  made(generating, SegmentEnd::kStop, 70);  // Late words of what is void.
  EXPECT_TRUE(pool.is_silent());
  score(scoring, true);
  EXPECT_TRUE(pool.is_silent());
  pool.request(server_node(0), kServerSlot, 2, SegmentReport{SampleId{4}, 30, 0, {}});
  EXPECT_EQ(pool.sends<Ack>().size(), 1U);
  EXPECT_TRUE(pool.notes<port::SegmentStored>().empty());
  pool.tell(kTrainLoopSlot, ResumePool{});
  const auto admitted = pool.notes<port::Admitted>();
  ASSERT_EQ(admitted.size(), 4U);
  EXPECT_EQ(admitted[0].group.value, 5U);
}

TEST_F(RolloutPoolTest, AResetToAnEarlierVersionCountsAsIfNothingHadBeenLost) {
  pool.tell(kTrainLoopSlot, PoolVersion{5});
  pool.tell(kTrainLoopSlot, PausePool{});
  pool.tell(kTrainLoopSlot, ResetPool{3, TrainBatchId{70}});
  EXPECT_EQ(pool.protocol().staleness().version(), 3);
  EXPECT_EQ(pool.protocol().staleness().counters().accepted, 6);
  pool.tell(kTrainLoopSlot, PoolVersion{3});
  EXPECT_TRUE(pool.notes<port::Refused>().empty());
  pool.tell(kTrainLoopSlot, ResumePool{});
  EXPECT_EQ(pool.notes<port::Admitted>().size(), 2U);
}

// What the count would be without the history of the versions before: far too many groups (H35).
TEST_F(RolloutPoolTest, ACountThatForgetsTheVersionsBeforeIsSeenToAdmitTooMany) {
  pool = Driven<RolloutPool>(RolloutPool(small_options(), rollout_cluster(2),
                                         [](std::int64_t, const StalenessLimits&) -> std::int64_t { return 0; }));
  pool.start();
  pool.tell(kTrainLoopSlot, PausePool{});
  pool.tell(kTrainLoopSlot, ResetPool{3, TrainBatchId{70}});
  pool.tell(kTrainLoopSlot, ResumePool{});
  EXPECT_EQ(pool.notes<port::Admitted>().size(), 8U);
}

TEST_F(RolloutPoolTest, ItsStateIsAllThereIs) {
  const auto sent = routes();
  const port::Send generate = routed(sent[0]);
  EXPECT_TRUE(pool.reload(RolloutPool(small_options(), rollout_cluster(2))));
  made(generate, SegmentEnd::kStop, 10);
  EXPECT_EQ(pool.effects<port::StartCompute>().size(), 1U);
}

}  // namespace
}  // namespace areal::test
