// A training rank: a step is made once, with all its shards, and dropped shards never come back.
#include "engine/proto/train_rank.h"

#include <gtest/gtest.h>

#include "tests/unit/effects.h"

namespace areal::proto {
namespace {

using test::Driven;

constexpr NodeId kController{1};
constexpr NodeId kStore{2};
constexpr TrainBatchId kBatch{1};
constexpr std::uint64_t kSeed = 77;

ClusterMap small_cluster() {
  ClusterMap cluster;
  cluster.trainers = {{10}, {11}};
  cluster.data_heads = {0};
  cluster.controller = kController;
  cluster.store = kStore;
  return cluster;
}

class TrainRankTest : public ::testing::Test {
 protected:
  void SetUp() override { rank.start(); }

  port::Send assign(std::uint64_t request, std::uint64_t shard, TrainBatchId batch = kBatch) {
    rank.request(kController, kPoolSlot, request, AssignShard{batch, {shard}});
    const auto sent = rank.sends<FetchShard>();
    return sent.empty() ? port::Send{} : sent[0];
  }
  void serve(const port::Send& fetch) {
    rank.answer(fetch, ShardData{from_record<FetchShard>(fetch.body).shard, Outcome::kOk, 10, {1, 2}});
  }
  void train(std::uint64_t request, Version version, std::uint32_t shards) {
    rank.request(kController, kTrainLoopSlot, request, TrainStep{version - 1, version, kBatch, shards, kSeed});
  }
  void compute(OpId op, Outcome outcome = Outcome::kOk) {
    rank.feed(port::ComputeDone{op, port::ComputeKind::kTrainStep, outcome, 1, 0, 0, {3, 4}});
  }
  std::vector<StepDone> done() { return rank.bodies<port::Send, StepDone>(); }

  Driven<TrainRank> rank{TrainRank({.rank = 0}, small_cluster())};
};

TEST_F(TrainRankTest, StepWaitsForAllItsShardsAndIsMadeOnce) {
  const port::Send first = assign(1, 100);
  EXPECT_EQ(rank.sends<Ack>().size(), 1U);
  const port::Send second = assign(2, 101);
  train(1, 1, 2);
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
  serve(first);
  EXPECT_EQ(rank.notes<port::ShardFetched>().size(), 1U);
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
  serve(second);
  const auto started = rank.effects<port::StartCompute>();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].what, port::ComputeKind::kTrainStep);
  EXPECT_EQ(started[0].version, 1U);
  EXPECT_EQ(started[0].seed, kSeed);
  train(1, 1, 2);  // Asked again while it runs: let go.
  EXPECT_TRUE(rank.is_silent());
  compute(started[0].op);
  ASSERT_EQ(rank.notes<port::StepTrained>().size(), 1U);
  EXPECT_EQ(rank.notes<port::StepTrained>()[0].digest, (Digest128{3, 4}));
  ASSERT_EQ(done().size(), 1U);
  EXPECT_EQ(done()[0].outcome, Outcome::kOk);
  train(1, 1, 2);  // The answer was lost.
  EXPECT_EQ(done().size(), 1U);
  train(2, 1, 2);  // Asked anew: answered, not made again.
  EXPECT_EQ(done().size(), 1U);
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
  EXPECT_TRUE(rank.reload(TrainRank({.rank = 0}, small_cluster())));
}

// All protocols of the controller count their requests from the same number.
TEST_F(TrainRankTest, EqualRequestNumbersOfDifferentProtocolsAreDifferentRequests) {
  serve(assign(1, 100));
  train(1, 1, 1);
  EXPECT_EQ(rank.effects<port::StartCompute>().size(), 1U);
  rank.request(kController, kDrainSlot, 1, QueryBatch{kBatch});
  EXPECT_EQ(rank.sends<BatchStats>().size(), 1U);
}

TEST_F(TrainRankTest, AShardThatTheStoreDoesNotKnowFailsTheStep) {
  const port::Send fetch = assign(1, 100);
  train(1, 1, 1);
  rank.answer(fetch, ShardData{{100}, Outcome::kRefused, 0, {}});
  ASSERT_EQ(done().size(), 1U);
  EXPECT_EQ(done()[0].outcome, Outcome::kFailed);
  EXPECT_TRUE(rank.notes<port::ShardFetched>().empty());
}

TEST_F(TrainRankTest, AStepWhoseShardsNeverComeFailsInTime) {
  train(1, 1, 1);
  const auto armed = rank.effects<port::ArmTimer>();
  ASSERT_EQ(armed.size(), 1U);
  rank.fire(armed[0].timer);
  ASSERT_EQ(done().size(), 1U);
  EXPECT_EQ(done()[0].outcome, Outcome::kTimedOut);
}

TEST_F(TrainRankTest, AVersionThatDoesNotFollowIsRefused) {
  train(1, 1, 0);
  compute(rank.effects<port::StartCompute>().at(0).op);
  train(2, 3, 0);
  ASSERT_EQ(done().size(), 1U);
  EXPECT_EQ(done()[0].outcome, Outcome::kMismatch);
  EXPECT_EQ(rank.notes<port::Refused>().at(0).reason, Refusal::kVersionOrder);
  train(3, 2, 0);
  EXPECT_EQ(rank.effects<port::StartCompute>().size(), 1U);
}

TEST_F(TrainRankTest, AFailedComputeMakesNoVersion) {
  train(1, 1, 0);
  compute(rank.effects<port::StartCompute>().at(0).op, Outcome::kMismatch);
  EXPECT_TRUE(rank.notes<port::StepTrained>().empty());
  EXPECT_EQ(done().at(0).outcome, Outcome::kMismatch);
  EXPECT_EQ(rank.protocol().version(), 0U);
}

// A fetch that is under way while its batch is dropped would put the shard back after it was counted as gone.
TEST_F(TrainRankTest, ADroppedBatchNeverComesBack) {
  serve(assign(1, 100));
  const port::Send late = assign(2, 101);
  rank.request(kController, kDrainSlot, 1, DropBatch{kBatch});
  ASSERT_EQ(rank.notes<port::ShardsDropped>().size(), 1U);
  EXPECT_EQ(rank.notes<port::ShardsDropped>()[0].count, 1U);
  EXPECT_EQ(rank.notes<port::ShardsDropped>()[0].left, 0U);
  serve(late);
  EXPECT_TRUE(rank.is_silent());
  assign(3, 102);  // An assignment that took its time.
  EXPECT_EQ(rank.notes<port::Refused>().at(0).reason, Refusal::kStaleAttempt);
  rank.request(kController, kDrainSlot, 2, QueryBatch{kBatch});
  EXPECT_EQ((rank.bodies<port::Send, BatchStats>().at(0).matching), 0U);
  assign(4, 103, TrainBatchId{2});
  EXPECT_EQ(rank.sends<FetchShard>().size(), 1U);
}

TEST_F(TrainRankTest, OnlyDataHeadsAreAssignedShardsAndOnlyTheControllerIsObeyed) {
  Driven<TrainRank> other{TrainRank({.rank = 1}, small_cluster())};
  other.start();
  other.request(kController, kPoolSlot, 1, AssignShard{kBatch, {100}});
  EXPECT_EQ(other.notes<port::Refused>().at(0).reason, Refusal::kRankMap);
  rank.request(NodeId{9}, kTrainLoopSlot, 1, TrainStep{0, 1, kBatch, 0, kSeed});
  EXPECT_EQ(rank.notes<port::Refused>().size(), 1U);
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
}

}  // namespace
}  // namespace areal::proto
