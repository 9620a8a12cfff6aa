// Contract of groups: who meets whom, what a meeting says, and how one that cannot be met ends.
#include "tests/contract/port_contract.h"

namespace areal::test {
namespace {

constexpr GroupId kGroup{77};
constexpr BatchId kOne{1};
constexpr BatchId kTwo{2};
constexpr Seat kAll[] = {Seat::kEngine, Seat::kTrainer, Seat::kOther};

using Outcomes = std::vector<port::Outcome>;
using port::BatchKind;
using port::Outcome;

}  // namespace

TEST_P(GroupContract, AGroupMeetsWhenAllRanksJoined) {
  join(Seat::kEngine, kGroup, 0, 3);
  join(Seat::kOther, kGroup, 2, 3);
  room().settle();
  for (const Seat seat : kAll) EXPECT_EQ(told_in_all(seat), 0U);
  join(Seat::kTrainer, kGroup, 1, 3);
  room().settle();
  for (const Seat seat : kAll) {
    const auto joined = told<port::GroupJoined>(seat);
    ASSERT_EQ(joined.size(), 1U);
    EXPECT_EQ(joined[0].group, kGroup);
    EXPECT_EQ(joined[0].outcome, Outcome::kOk);
  }
}

// Two processes that both think to be rank 1 must not meet: each would get the other's bytes.
TEST_P(GroupContract, AGroupWithARankTwiceDoesNotMeet) {
  join(Seat::kEngine, kGroup, 0, 3);
  join(Seat::kTrainer, kGroup, 1, 3);
  join(Seat::kOther, kGroup, 1, 3);
  room().settle();
  for (const Seat seat : kAll) {
    for (const port::GroupJoined& joined : told<port::GroupJoined>(seat)) EXPECT_NE(joined.outcome, Outcome::kOk);
  }
}

TEST_P(GroupContract, NthBatchesMeet) {
  meet(kGroup);
  for (const Seat seat : {Seat::kEngine, Seat::kTrainer}) {
    post(seat, kGroup, kOne, BatchKind::kSum, 1, 1);
    post(seat, kGroup, kTwo, BatchKind::kSum, 2, 10);
  }
  post(Seat::kOther, kGroup, kOne, BatchKind::kSum, 1, 2);
  room().settle();
  for (const Seat seat : kAll) {
    ASSERT_EQ(done(seat).size(), 1U);
    EXPECT_EQ(done(seat)[0].batch, kOne);
    EXPECT_EQ(done(seat)[0].value, 4U);
  }
  post(Seat::kOther, kGroup, kTwo, BatchKind::kSum, 2, 20);
  room().settle();
  for (const Seat seat : kAll) {
    ASSERT_EQ(done(seat).size(), 2U);
    EXPECT_EQ(done(seat)[1].batch, kTwo);
    EXPECT_EQ(done(seat)[1].value, 40U);
  }
}

TEST_P(GroupContract, SumLeastAndMostAreOfBothWords) {
  meet(kGroup);
  const std::uint64_t values[] = {5, UINT64_MAX, 7};
  const std::uint64_t counts[] = {30, 10, 20};
  const BatchKind kinds[] = {BatchKind::kSum, BatchKind::kMin, BatchKind::kMax};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    for (std::size_t i = 0; i < 3; ++i) {
      post(kAll[i], kGroup, BatchId{kind + 1}, kinds[kind], kind, values[i], counts[i]);
    }
  }
  room().settle();
  for (const Seat seat : kAll) {
    const auto ended = done(seat);
    ASSERT_EQ(ended.size(), 3U);
    EXPECT_EQ(ended[0].value, 11U);  // Modulo 2^64.
    EXPECT_EQ(ended[0].count, 60U);
    EXPECT_EQ(ended[1].value, 5U);
    EXPECT_EQ(ended[1].count, 10U);
    EXPECT_EQ(ended[2].value, UINT64_MAX);
    EXPECT_EQ(ended[2].count, 30U);
  }
}

TEST_P(GroupContract, NobodysBarrierEndsBeforeAllPosted) {
  meet(kGroup);
  post(Seat::kEngine, kGroup, kOne, BatchKind::kBarrier, 1);
  post(Seat::kOther, kGroup, kOne, BatchKind::kBarrier, 1);
  room().settle();
  for (const Seat seat : kAll) EXPECT_TRUE(done(seat).empty());
  post(Seat::kTrainer, kGroup, kOne, BatchKind::kBarrier, 1);
  EXPECT_TRUE(done(Seat::kTrainer).empty());
  room().settle();
  for (const Seat seat : kAll) EXPECT_EQ(outcomes(seat), Outcomes{Outcome::kOk});
}

TEST_P(GroupContract, ControlTagsThatDifferEndForAllAsMismatch) {
  meet(kGroup);
  post(Seat::kEngine, kGroup, kOne, BatchKind::kSum, 1);
  post(Seat::kTrainer, kGroup, kOne, BatchKind::kSum, 2);
  post(Seat::kOther, kGroup, kOne, BatchKind::kSum, 1);
  room().settle();
  for (const Seat seat : kAll) EXPECT_EQ(outcomes(seat), Outcomes{Outcome::kMismatch});
}

TEST_P(GroupContract, PayloadTagsThatDifferHangUntilAbort) {
  const bool hangs = room().facts().has_nccl;
  meet(kGroup, port::Backend::kNccl);
  post(Seat::kEngine, kGroup, kOne, BatchKind::kSum, 1);
  post(Seat::kTrainer, kGroup, kOne, BatchKind::kSum, 2);
  post(Seat::kOther, kGroup, kOne, BatchKind::kSum, 1);
  room().pass(room().facts().silence);
  for (const Seat seat : kAll) EXPECT_EQ(outcomes(seat), hangs ? Outcomes{} : Outcomes{Outcome::kMismatch});
  at(Seat::kOther).transport().abort(kFirst, {kGroup});
  room().settle();
  for (const Seat seat : kAll) EXPECT_EQ(outcomes(seat), Outcomes{hangs ? Outcome::kAborted : Outcome::kMismatch});
  EXPECT_TRUE(std::holds_alternative<port::GroupAborted>(room().seen(Seat::kOther, kFirst).back()));
}

// Whoever is told GroupAborted takes its buffers back: nothing of the group may come after it.
TEST_P(GroupContract, AbortEndsEverythingUnderWayAndThenSaysSo) {
  meet(kGroup);
  post(Seat::kEngine, kGroup, kOne, BatchKind::kBarrier, 1);
  post(Seat::kEngine, kGroup, kTwo, BatchKind::kSum, 2);
  post(Seat::kTrainer, kGroup, kOne, BatchKind::kBarrier, 1);
  room().settle();
  at(Seat::kEngine).transport().abort(kFirst, {kGroup});
  room().settle();
  EXPECT_EQ(outcomes(Seat::kEngine), (Outcomes{Outcome::kAborted, Outcome::kAborted}));
  EXPECT_EQ(outcomes(Seat::kTrainer), Outcomes{Outcome::kAborted});
  EXPECT_TRUE(done(Seat::kOther).empty());
  EXPECT_EQ(told<port::GroupAborted>(Seat::kEngine).size(), 1U);
  EXPECT_TRUE(std::holds_alternative<port::GroupAborted>(room().seen(Seat::kEngine, kFirst).back()));
  EXPECT_TRUE(told<port::GroupAborted>(Seat::kTrainer).empty());
  post(Seat::kOther, kGroup, kOne, BatchKind::kBarrier, 1);
  room().settle();
  EXPECT_EQ(outcomes(Seat::kOther), Outcomes{Outcome::kAborted});
}

TEST_P(GroupContract, AbortEndsJoinsUnderWay) {
  join(Seat::kEngine, kGroup, 0, 3);
  join(Seat::kTrainer, kGroup, 1, 3);
  room().settle();
  at(Seat::kTrainer).transport().abort(kFirst, {kGroup});
  room().settle();
  for (const Seat seat : {Seat::kEngine, Seat::kTrainer}) {
    const auto joined = told<port::GroupJoined>(seat);
    ASSERT_EQ(joined.size(), 1U);
    EXPECT_EQ(joined[0].outcome, Outcome::kAborted);
  }
  EXPECT_TRUE(std::holds_alternative<port::GroupAborted>(room().seen(Seat::kTrainer, kFirst).back()));
  join(Seat::kOther, kGroup, 2, 3);
  room().settle();
  ASSERT_EQ(told<port::GroupJoined>(Seat::kOther).size(), 1U);
  EXPECT_EQ(told<port::GroupJoined>(Seat::kOther)[0].outcome, Outcome::kAborted);
}

TEST_P(GroupContract, AbortByOneWhoHasNotJoinedEndsTheJoinsOfOthers) {
  join(Seat::kEngine, kGroup, 0, 3);
  join(Seat::kTrainer, kGroup, 1, 3);
  room().settle();
  at(Seat::kOther).transport().abort(kFirst, {kGroup});
  room().settle();
  for (const Seat seat : {Seat::kEngine, Seat::kTrainer}) {
    const auto joined = told<port::GroupJoined>(seat);
    ASSERT_EQ(joined.size(), 1U);
    EXPECT_EQ(joined[0].outcome, Outcome::kAborted);
  }
  EXPECT_EQ(told<port::GroupAborted>(Seat::kOther).size(), 1U);
}

TEST_P(GroupContract, NothingOfAGroupComesAfterItsAbort) {
  join(Seat::kEngine, kGroup, 0, 3);
  join(Seat::kTrainer, kGroup, 1, 3);
  join(Seat::kOther, kGroup, 2, 3);
  at(Seat::kEngine).transport().abort(kFirst, {kGroup});
  room().settle();
  EXPECT_EQ(told<port::GroupJoined>(Seat::kEngine).size(), 1U);
  EXPECT_TRUE(std::holds_alternative<port::GroupAborted>(room().seen(Seat::kEngine, kFirst).back()));
}

TEST_P(GroupContract, AnUnknownGroupCanBeAborted) {
  at(Seat::kEngine).transport().abort(kFirst, {GroupId{4'000}});
  EXPECT_EQ(told_in_all(Seat::kEngine), 0U);
  room().settle();
  ASSERT_EQ(told<port::GroupAborted>(Seat::kEngine).size(), 1U);
  EXPECT_EQ(told<port::GroupAborted>(Seat::kEngine)[0].group.value, 4'000U);
}

TEST_P(GroupContract, ABatchOfAnUnknownGroupEndsAborted) {
  post(Seat::kEngine, GroupId{4'000}, kOne, BatchKind::kBarrier, 1);
  EXPECT_EQ(told_in_all(Seat::kEngine), 0U);
  room().settle();
  EXPECT_EQ(outcomes(Seat::kEngine), Outcomes{Outcome::kAborted});
}

TEST_P(GroupContract, EveryoneWhoAbortsIsTold) {
  meet(kGroup);
  for (const Seat seat : kAll) at(seat).transport().abort(kFirst, {kGroup});
  room().settle();
  for (const Seat seat : kAll) EXPECT_EQ(told<port::GroupAborted>(seat).size(), 1U);
}

TEST_P(GroupContract, ControlBatchesOfADeadMemberEndAsPeerGone) {
  meet(kGroup);
  post(Seat::kEngine, kGroup, kOne, BatchKind::kBarrier, 1);
  room().kill(Seat::kTrainer);
  room().pass(room().facts().reset_after + 100_ms);
  ASSERT_EQ(outcomes(Seat::kEngine), Outcomes{Outcome::kPeerGone});
  EXPECT_EQ(done(Seat::kEngine)[0].peer, room().node(Seat::kTrainer));
  post(Seat::kOther, kGroup, kOne, BatchKind::kBarrier, 1);
  room().settle();
  EXPECT_EQ(outcomes(Seat::kOther), Outcomes{Outcome::kPeerGone});
  EXPECT_EQ(done(Seat::kEngine).size(), 1U);
}

// A barrier that the dead one had posted may be met; a later one cannot.
TEST_P(GroupContract, WhatADeadMemberPostedMayStillBeMet) {
  meet(kGroup);
  post(Seat::kTrainer, kGroup, kOne, BatchKind::kSum, 1, 5);
  room().kill(Seat::kTrainer);
  for (const Seat seat : {Seat::kEngine, Seat::kOther}) post(seat, kGroup, kOne, BatchKind::kSum, 1, 1);
  room().settle();
  for (const Seat seat : {Seat::kEngine, Seat::kOther}) {
    ASSERT_EQ(done(seat).size(), 1U);
    const port::BatchDone ended = done(seat)[0];
    EXPECT_TRUE(ended.outcome == Outcome::kPeerGone || (ended.outcome == Outcome::kOk && ended.value == 7));
  }
}

TEST_P(GroupContract, PayloadOfADeadMemberHangsUntilAbort) {
  const bool hangs = room().facts().has_nccl;
  join(Seat::kEngine, kGroup, 0, 2, port::Backend::kNccl);
  join(Seat::kTrainer, kGroup, 1, 2, port::Backend::kNccl);
  room().settle();
  port::PostBatch receive{.group = kGroup, .batch = kOne, .kind = BatchKind::kReceive, .tag = 1};
  receive.version = 1;
  receive.dtype = room().facts().payload.front();
  at(Seat::kEngine).transport().post(kFirst, receive);
  room().kill(Seat::kTrainer);
  room().pass(room().facts().reset_after + room().facts().silence);
  EXPECT_EQ(outcomes(Seat::kEngine), hangs ? Outcomes{} : Outcomes{Outcome::kPeerGone});
  at(Seat::kEngine).transport().abort(kFirst, {kGroup});
  room().settle();
  EXPECT_EQ(outcomes(Seat::kEngine), Outcomes{hangs ? Outcome::kAborted : Outcome::kPeerGone});
  EXPECT_TRUE(std::holds_alternative<port::GroupAborted>(room().seen(Seat::kEngine, kFirst).back()));
}

TEST_P(GroupContract, ANewProcessIsNotToldOfTheOldOnesBatches) {
  meet(kGroup);
  post(Seat::kTrainer, kGroup, kOne, BatchKind::kBarrier, 1);
  room().kill(Seat::kTrainer);
  room().restart(Seat::kTrainer);
  at(Seat::kEngine).transport().abort(kFirst, {kGroup});
  room().settle();
  EXPECT_TRUE(done(Seat::kTrainer).empty());
  EXPECT_TRUE(told<port::GroupJoined>(Seat::kTrainer).empty());
}

TEST_P(GroupContract, LeavingSaysNothing) {
  meet(kGroup);
  const std::size_t before = told_in_all(Seat::kEngine);
  for (const Seat seat : kAll) at(seat).transport().leave(kFirst, {kGroup});
  room().settle();
  EXPECT_EQ(told_in_all(Seat::kEngine), before);
}

}  // namespace areal::test
