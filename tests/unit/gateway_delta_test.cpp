// When the gateway asks for a delta, what it says that an update was, and what happens when training begins anew.
#include "tests/unit/gateway_fixture.h"

namespace areal::test {
namespace {

class GatewayDeltaTest : public GatewayFixture {
 protected:
  GatewayDeltaTest() : GatewayFixture(true) {}
};

TEST_F(GatewayDeltaTest, TheFirstUpdateIsFullAndTheNextMayBeDeltas) {
  for (Version version = 1; version <= 4; ++version) update(version);
  ASSERT_EQ(published.size(), 4U);
  EXPECT_EQ(published[0].mode, UpdateMode::kFull);
  EXPECT_EQ(published[0].reason, FullReason::kNotSeeded);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(published[i].mode, UpdateMode::kDelta);
    EXPECT_EQ(published[i].reason, FullReason::kNone);
    EXPECT_EQ(replies[i].mode, UpdateMode::kDelta);
  }
  EXPECT_EQ(executes.back().base, 3U);
  // Only a full update is an anchor.
  ASSERT_EQ(anchors.size(), 1U);
  EXPECT_EQ(anchors[0].version, 1U);
  EXPECT_EQ(anchors[0].reason, FullReason::kNotSeeded);
  EXPECT_TRUE(gateway.reload(make_gateway(true)));
}

TEST_F(GatewayDeltaTest, WithDeltasOffEveryUpdateIsFull) {
  gateway = Driven<Gateway>(make_gateway(false));
  SetUp();
  update(1), update(2);
  EXPECT_EQ(published.back().mode, UpdateMode::kFull);
  EXPECT_EQ(published.back().reason, FullReason::kNoDelta);
}

// A receiver that was started anew with other weights says so before anything moves.
TEST_F(GatewayDeltaTest, AnEngineThatDoesNotHoldTheBaseMakesItFull) {
  update(1);
  for (const bool reverse : {false, true}) {
    backwards = reverse;
    prepared = [](std::uint32_t rank, Prepared& said) { said.base = rank == 2 ? 0 : said.base; };
    executes.clear();
    update(published.back().version + 1);
    ASSERT_EQ(executes.size(), kWorld) << "in one attempt";
    for (const Execute& asked : executes) {
      EXPECT_EQ(asked.mode, UpdateMode::kFull);
      EXPECT_EQ(asked.reason, FullReason::kBaseMismatch);
    }
    EXPECT_EQ(published.back().reason, FullReason::kBaseMismatch);
    EXPECT_EQ(anchors.back().reason, FullReason::kBaseMismatch);
  }
  prepared = [](std::uint32_t rank, Prepared& said) { said.base = rank >= kInfers ? 0 : said.base; };
  update(4);
  EXPECT_EQ(published.back().mode, UpdateMode::kDelta) << "a sender's own version is no base";
}

TEST_F(GatewayDeltaTest, TheReasonIsThatOfTheLowestSenderThatHasOne) {
  update(1);
  for (const bool reverse : {false, true}) {
    backwards = reverse;
    executed = [](std::uint32_t rank, Executed& said) {
      said.mode = UpdateMode::kFull;
      said.reason = FullReason::kNone;
      if (rank == kInfers) said.reason = FullReason::kAnchorInterval;
      if (rank == kInfers + 1) said.reason = FullReason::kInversionError;
    };
    update(published.back().version + 1);
    EXPECT_EQ(published.back().mode, UpdateMode::kFull);
    EXPECT_EQ(published.back().reason, FullReason::kAnchorInterval) << reverse;
    executed = [](std::uint32_t rank, Executed& said) {
      said.mode = UpdateMode::kFull;
      said.reason = rank == kInfers ? FullReason::kPeerRank : FullReason::kNone;
      if (rank == kInfers + 1) said.reason = FullReason::kInversionError;
    };
    update(published.back().version + 1);
    EXPECT_EQ(published.back().reason, FullReason::kInversionError) << reverse;
    executed = [](std::uint32_t rank, Executed& said) {
      said.mode = UpdateMode::kFull;
      said.reason = rank >= kInfers ? FullReason::kPeerRank : FullReason::kNone;
    };
    update(published.back().version + 1);
    EXPECT_EQ(published.back().reason, FullReason::kBaseMismatch) << "then a receiver had it";
    EXPECT_EQ(anchors.back().version, published.back().version);
  }
  EXPECT_EQ(executes.size(), 7 * kWorld) << "no attempt failed";
}

TEST_F(GatewayDeltaTest, RanksThatDisagreeAboutTheModeFailTheAttempt) {
  for (std::uint32_t odd = 0; odd < kWorld; ++odd) {
    const Version version = odd + 2;
    if (odd == 0) update(1);
    bool disagrees = true;
    executed = [&](std::uint32_t rank, Executed& said) {
      if (rank == odd && std::exchange(disagrees, false)) said.mode = UpdateMode::kFull;
    };
    update(version);
    ASSERT_EQ(published.size(), version);
    EXPECT_EQ(published.back().attempt, 2U) << odd;
    EXPECT_EQ(published.back().mode, UpdateMode::kFull);
    EXPECT_EQ(published.back().reason, FullReason::kPeerLost);
  }
}

// Somebody who runs the delta protocol although a full update was asked for leaves engines with who knows what.
TEST_F(GatewayDeltaTest, ADeltaThatNobodyAskedForFailsTheAttempt) {
  std::uint32_t wrong = kWorld;
  executed = [&](std::uint32_t, Executed& said) {
    if (wrong > 0) --wrong, said.mode = UpdateMode::kDelta;
  };
  update(1);
  ASSERT_EQ(published.size(), 1U);
  EXPECT_GT(published.back().attempt, 1U);
  EXPECT_EQ(published.back().mode, UpdateMode::kFull);
}

TEST_F(GatewayDeltaTest, AfterAFailureTheNextAttemptIsFullAndTheNextVersionIsNot) {
  update(1);
  for (const KindId step : {Prepare::kKind, Execute::kKind}) {
    std::uint32_t fails = 1;
    if (step == Prepare::kKind) {
      prepared = [&](std::uint32_t rank, Prepared& said) {
        if (rank == 1 && fails > 0) --fails, said.outcome = Outcome::kRefused;
      };
    } else {
      executed = [&](std::uint32_t rank, Executed& said) {
        if (rank == 1 && fails > 0) --fails, said.outcome = Outcome::kFailed;
      };
    }
    update(published.back().version + 1);
    EXPECT_EQ(published.back().attempt, 2U);
    EXPECT_EQ(published.back().mode, UpdateMode::kFull);
    EXPECT_EQ(published.back().reason, FullReason::kPeerLost);
    update(published.back().version + 1);
    EXPECT_EQ(published.back().mode, UpdateMode::kDelta);
  }
}

// Whoever restores the rank asks anew: its new process holds other weights.
TEST_F(GatewayDeltaTest, ADeadTrainerEndsTheUpdateAtAnyStep) {
  for (const KindId step : {Prepare::kKind, Execute::kKind, Commit::kKind}) {
    gateway = Driven<Gateway>(make_gateway(true));
    open.clear(), published.clear(), replies.clear();
    SetUp();
    update(1);
    held = step;
    update(2);
    ASSERT_EQ(replies.size(), 1U);
    exited(kInfers + 1);
    std::erase_if(open, [&](const port::Send& send) { return send.to == map.trainers[1]; });
    release();
    ASSERT_EQ(replies.size(), 2U);
    EXPECT_EQ(replies[1].outcome, Outcome::kPeerGone);
    EXPECT_EQ(published.size(), 1U);
    ++incarnations[kInfers + 1];
    started(kInfers + 1);
    update(2, 2);
    EXPECT_EQ(replies.back().outcome, Outcome::kOk);
    EXPECT_EQ(published.back().mode, UpdateMode::kFull);
    EXPECT_EQ(published.back().reason, FullReason::kRecovered);
  }
}

TEST_F(GatewayDeltaTest, ADeadEngineDoesNotEndTheUpdate) {
  update(1);
  held = Execute::kKind;
  update(2);
  exited(1);
  std::erase_if(open, [&](const port::Send& send) { return send.to == map.node_of_transfer_rank(1); });
  release();
  EXPECT_EQ(replies.size(), 1U);
  ++incarnations[1];
  started(1);
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[1].outcome, Outcome::kOk);
  EXPECT_EQ(published.back().reason, FullReason::kPeerLost);
}

TEST_F(GatewayDeltaTest, TrainingThatBeganAnewMayPublishAnOlderVersionInFull) {
  for (Version version = 1; version <= 5; ++version) update(version);
  replace(kInfers);
  update(4, 2);
  ASSERT_EQ(published.size(), 6U);
  EXPECT_EQ(published.back().version, 4U);
  EXPECT_EQ(published.back().mode, UpdateMode::kFull);
  EXPECT_EQ(published.back().reason, FullReason::kRecovered);
  EXPECT_EQ(gateway.protocol().version(), 4U);
  EXPECT_EQ(members.back().version, 4U);
  EXPECT_EQ(members.back().training_epoch, 2U) << "or the router takes it for old news";
  update(5, 2);
  EXPECT_EQ(published.back().mode, UpdateMode::kDelta) << "the history goes on as ever";
  EXPECT_EQ(published.size(), 7U);
  update(5, 2);
  EXPECT_EQ(replies.back().outcome, Outcome::kOk) << "asked again, it is answered again";
  EXPECT_EQ(published.size(), 7U);
}

TEST_F(GatewayDeltaTest, TheSameVersionUnderALaterTrainingEpochIsMovedAgain) {
  update(1), update(2);
  replace(kInfers);
  update(2, 2);
  ASSERT_EQ(published.size(), 3U);
  EXPECT_EQ(published.back().reason, FullReason::kRecovered);
}

// A step that failed on a broken group begins training anew although nobody died: the pair is whole then. It gets a new
// epoch all the same, or a version that was published would name other bytes under it.
TEST_F(GatewayDeltaTest, AVersionIsMovedAgainUnderANewPairEpochAlsoIfNobodyDied) {
  for (Version version = 1; version <= 3; ++version) update(version);
  const Epoch before = published.back().epoch;
  update(2, 2);
  EXPECT_EQ(replies.back().outcome, Outcome::kOk);
  ASSERT_EQ(published.size(), 4U);
  EXPECT_EQ(published.back().version, 2U);
  EXPECT_GT(published.back().epoch, before);
  EXPECT_EQ(published.back().reason, FullReason::kRecovered);
  update(3, 2);
  EXPECT_EQ(published.size(), 5U);
}

// The gateway was about to try anew when the trainer died: by the time it does, the rank holds again what it must.
TEST_F(GatewayDeltaTest, AnUpdateThatEndedWellAfterItsTrainerDiedIsMadeAgainUnderTheNewTrainingEpoch) {
  update(1);
  held = Execute::kKind;
  update(2);
  exited(0), exited(kInfers);
  std::erase_if(open, [](const port::Send& send) { return send.body.kind == Execute::kKind; });
  ++incarnations[0], ++incarnations[kInfers];
  started(0), started(kInfers);
  release();
  update(2, 2);
  EXPECT_EQ(replies.back().outcome, Outcome::kOk);
  EXPECT_EQ(published.back().version, 2U);
  EXPECT_EQ(published.back().reason, FullReason::kRecovered);
}

TEST_F(GatewayDeltaTest, AnEarlierTrainingEpochIsRefused) {
  update(1), update(2);
  replace(kInfers);
  update(2, 3);
  const std::size_t before = executes.size();
  for (const Epoch stale : {1U, 2U}) {
    for (const Version version : {2U, 3U}) {
      update(version, stale);
      EXPECT_EQ(replies.back().outcome, Outcome::kRefused) << stale << " " << version;
    }
  }
  EXPECT_EQ(executes.size(), before);
  EXPECT_EQ(gateway.protocol().version(), 2U);
  update(3, 3);
  EXPECT_EQ(published.back().version, 3U);
}

// Engines hold what was published before training began anew. What a replaced rank loaded is something else.
TEST_F(GatewayDeltaTest, WhatWasPublishedBeforeTrainingBeganAnewIsNotVersionZero) {
  update(1);
  members.clear(), inits.clear(), teardowns.clear();
  exited(kInfers);
  update(1, 2);  // It waits for the trainer.
  exited(1);
  ++incarnations[1], ++incarnations[kInfers];
  held = Execute::kKind;
  started(1), started(kInfers);
  ASSERT_FALSE(inits.empty());
  for (const InitGroups& init : inits) EXPECT_FALSE(init.as_loaded);
  for (const EngineMember& member : members) EXPECT_NE(member.incarnations != 0 && member.version == 0, true);
  release();
  EXPECT_EQ(published.back().version, 1U);
  EXPECT_EQ(published.back().reason, FullReason::kRecovered);
}

TEST_F(GatewayDeltaTest, AnEngineThatLostARankIsUnprovenAlsoWhenTrainingBeganAnew) {
  update(1);
  exited(kInfers);
  held = Prepare::kKind;
  update(1, 2);
  ++incarnations[kInfers];
  started(kInfers);
  teardowns.clear();
  exited(1);
  std::erase_if(open, [&](const port::Send& send) { return send.to == map.node_of_transfer_rank(1); });
  release();
  ++incarnations[1];
  started(1);
  const bool told = std::ranges::any_of(teardowns, &Teardown::unproven);
  EXPECT_TRUE(told) << "rank 0 of that engine still serves what its other rank lost";
  EXPECT_EQ(published.back().version, 1U);
}

// Without a checkpoint training begins at the very start, and engines must come back to it.
TEST_F(GatewayDeltaTest, TrainingThatBeginsAtTheStartMovesVersionZero) {
  update(1), update(2);
  replace(kInfers);
  update(0, 2);
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies.back().outcome, Outcome::kOk);
  EXPECT_EQ(gateway.protocol().version(), 0U);
  ASSERT_EQ(published.size(), 3U);
  EXPECT_EQ(published.back().attempt, 1U);
  EXPECT_EQ(published.back().reason, FullReason::kRecovered);
  update(1, 2);
  EXPECT_EQ(published.back().version, 1U);
  EXPECT_EQ(published.size(), 4U);
}

}  // namespace
}  // namespace areal::test
