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
  void SetUp() override {
    rank.start();
    join(1, 0);
    meet(1);
  }
  // Asks to join; a group of an earlier training epoch is aborted at once.
  void join(Epoch epoch, Version version, std::uint32_t slot = 0) {
    rank.request(kController, kTrainLoopSlot, ++last, JoinTraining{epoch, version, slot, 900});
    const auto aborted = rank.effects<port::AbortGroup>();
    if (!aborted.empty()) rank.feed(port::GroupAborted{aborted[0].group});
  }
  void meet(Epoch epoch, Outcome outcome = Outcome::kOk) {
    rank.feed(port::GroupJoined{training_group(epoch), outcome});
  }

  port::Send assign(std::uint64_t request, std::uint64_t shard, TrainBatchId batch = kBatch) {
    rank.request(kController, kPoolSlot, request, AssignShard{batch, {shard}});
    const auto sent = rank.sends<FetchShard>();
    return sent.empty() ? port::Send{} : sent[0];
  }
  void serve(const port::Send& fetch) {
    rank.answer(fetch, ShardData{from_record<FetchShard>(fetch.body).shard, Outcome::kOk, 10, {1, 2}});
  }
  void train(std::uint64_t request, Version version, std::uint32_t shards, Epoch epoch = 1) {
    rank.request(kController, kTrainLoopSlot, 100 + request,
                 TrainStep{version - 1, version, kBatch, shards, kSeed, epoch});
  }
  // The operation that was just started ends.
  void end_compute(Outcome outcome = Outcome::kOk, std::uint64_t count = 0, std::uint64_t total = 0) {
    const auto started = rank.effects<port::StartCompute>().at(0);
    rank.feed(port::ComputeDone{started.op, started.what, outcome, started.version, count, total, {3, 4}});
  }
  // Gradients are computed and reduced with those of others, of which `others` are not finite.
  void reduce(std::uint64_t own = 0, std::uint64_t others = 0) {
    end_compute(Outcome::kOk, own, 50);
    const auto batch = rank.effects<port::PostBatch>().at(0);
    rank.feed(port::BatchDone{batch.group, batch.batch, Outcome::kOk, {}, 50, own + others});
  }
  void make(std::uint64_t request, Version version) {
    train(request, version, 0);
    reduce();
    end_compute(Outcome::kOk, 1);
  }
  template <RecordType T>
  T only() {
    const auto found = rank.bodies<port::Send, T>();
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? T{} : found[0];
  }
  std::vector<StepDone> done() { return rank.bodies<port::Send, StepDone>(); }

  Driven<TrainRank> rank{TrainRank({.rank = 0}, small_cluster())};
  std::uint64_t last = 0;
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
  EXPECT_EQ(started[0].what, port::ComputeKind::kGradients);
  EXPECT_EQ(started[0].version, 1U);
  EXPECT_EQ(started[0].seed, kSeed);
  train(1, 1, 2);  // Asked again while it runs: let go.
  EXPECT_TRUE(rank.is_silent());
  rank.feed(port::ComputeDone{started[0].op, started[0].what, Outcome::kOk, 1, 0, 50, {}});
  const auto batch = rank.effects<port::PostBatch>().at(0);
  EXPECT_EQ(batch.group, training_group(1));
  EXPECT_EQ(batch.kind, port::BatchKind::kReduce);
  EXPECT_EQ(batch.value, 50U);
  rank.feed(port::BatchDone{batch.group, batch.batch, Outcome::kOk, {}, 80, 0});
  const auto stepping = rank.effects<port::StartCompute>().at(0);
  EXPECT_EQ(stepping.what, port::ComputeKind::kTrainStep);
  EXPECT_EQ(stepping.amount, 1U);
  end_compute(Outcome::kOk, 1);
  ASSERT_EQ(rank.notes<port::StepTrained>().size(), 1U);
  EXPECT_EQ(rank.notes<port::StepTrained>()[0].digest, (Digest128{3, 4}));
  EXPECT_EQ(rank.notes<port::StepTrained>()[0].optimizer_steps, 1U);
  EXPECT_EQ(rank.tells<StepMade>().at(0).version, 1U);
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
  make(1, 1);
  train(2, 3, 0);
  ASSERT_EQ(done().size(), 1U);
  EXPECT_EQ(done()[0].outcome, Outcome::kMismatch);
  EXPECT_EQ(rank.notes<port::Refused>().at(0).reason, Refusal::kVersionOrder);
  train(3, 2, 0);
  EXPECT_EQ(rank.effects<port::StartCompute>().size(), 1U);
}

TEST_F(TrainRankTest, AFailedComputeMakesNoVersion) {
  train(1, 1, 0);
  reduce();
  end_compute(Outcome::kMismatch);
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
  rank.request(NodeId{9}, kTrainLoopSlot, 1, TrainStep{0, 1, kBatch, 0, kSeed, 1});
  EXPECT_EQ(rank.notes<port::Refused>().size(), 1U);
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
}

// ---- Overflow and the reduction ----

// One rank's overflow skips the step of all: the version exists, the optimizer made no step (H40, INV-6).
TEST_F(TrainRankTest, AnOverflowAnywhereSkipsTheStepAndTheVersionAdvances) {
  train(1, 1, 0);
  reduce(0, 3);
  EXPECT_EQ(rank.effects<port::StartCompute>().at(0).amount, 0U);
  end_compute(Outcome::kOk, 0);
  EXPECT_EQ(rank.notes<port::StepTrained>().at(0).optimizer_steps, 0U);
  EXPECT_EQ(done().at(0).outcome, Outcome::kOk);
  EXPECT_EQ(rank.protocol().version(), 1U);
  train(2, 2, 0);
  EXPECT_EQ(rank.effects<port::StartCompute>().size(), 1U);
}

TEST_F(TrainRankTest, ARankWithoutShardsReducesToo) {
  Driven<TrainRank> other{TrainRank({.rank = 1}, small_cluster())};
  other.start();
  other.request(kController, kTrainLoopSlot, 1, JoinTraining{1, 0, 0, 900});
  EXPECT_EQ(other.effects<port::JoinGroup>().at(0).rank, 1U);
  EXPECT_EQ(other.effects<port::JoinGroup>().at(0).world, 2U);
  other.feed(port::GroupJoined{training_group(1), Outcome::kOk});
  other.request(kController, kTrainLoopSlot, 2, TrainStep{0, 1, kBatch, 0, kSeed, 1});
  const auto started = other.effects<port::StartCompute>().at(0);
  other.feed(port::ComputeDone{started.op, started.what, Outcome::kOk, 1, 0, 7, {}});
  EXPECT_EQ(other.effects<port::PostBatch>().size(), 1U);
}

TEST_F(TrainRankTest, ARankThatIsLetSkipTheReductionStepsOnItsOwn) {
  rank = Driven<TrainRank>(TrainRank({.rank = 0}, small_cluster(), [](std::uint32_t shards) { return shards > 0; }));
  rank.start();
  join(1, 0);
  meet(1);
  train(1, 1, 0);
  end_compute(Outcome::kOk, 0, 7);
  EXPECT_TRUE(rank.effects<port::PostBatch>().empty());
  EXPECT_EQ(rank.effects<port::StartCompute>().at(0).what, port::ComputeKind::kTrainStep);
}

TEST_F(TrainRankTest, AReductionThatEndsBadlyFailsTheStep) {
  train(1, 1, 0);
  end_compute();
  const auto batch = rank.effects<port::PostBatch>().at(0);
  rank.feed(port::BatchDone{batch.group, batch.batch, Outcome::kAborted, {}, 0, 0});
  EXPECT_EQ(done().at(0).outcome, Outcome::kAborted);
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
}

// ---- Training epochs ----

TEST_F(TrainRankTest, AStepOfAnotherTrainingEpochIsRefused) {
  train(1, 1, 0, 2);
  EXPECT_EQ(done().at(0).outcome, Outcome::kRefused);
  EXPECT_EQ(rank.notes<port::Refused>().at(0).reason, Refusal::kWrongEpoch);
}

// The group never notices a death: the step hangs until the next training epoch ends it.
TEST_F(TrainRankTest, JoiningAnewDropsTheStepAbortsTheGroupAndReadsTheCheckpointBack) {
  serve(assign(1, 100));
  train(1, 1, 1);
  end_compute(Outcome::kOk, 0, 50);  // The reduction is under way.
  rank.request(kController, kTrainLoopSlot, 50, JoinTraining{2, 7, 1, 901});
  EXPECT_EQ(done().at(0).outcome, Outcome::kAborted);
  EXPECT_EQ(rank.notes<port::ShardsDropped>().at(0).count, 1U);
  EXPECT_TRUE(rank.protocol().held().empty());
  ASSERT_EQ(rank.effects<port::AbortGroup>().size(), 1U);
  EXPECT_EQ(rank.effects<port::AbortGroup>()[0].group, training_group(1));
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
  rank.feed(port::GroupAborted{training_group(1)});
  const auto load = rank.effects<port::StartCompute>().at(0);
  EXPECT_EQ(load.what, port::ComputeKind::kLoadCheckpoint);
  EXPECT_EQ(load.version, 7U);
  EXPECT_EQ(load.amount, 1U);
  EXPECT_TRUE(rank.reload(TrainRank({.rank = 0}, small_cluster())));
  rank.feed(port::ComputeDone{load.op, load.what, Outcome::kOk, 7, 0, 0, {5, 6}});
  EXPECT_EQ(rank.tells<WeightsReplaced>().at(0).version, 7U);
  EXPECT_TRUE(rank.notes<port::CheckpointRank>().at(0).restored);
  EXPECT_EQ(rank.effects<port::JoinGroup>().at(0).group, training_group(2));
  EXPECT_EQ(rank.effects<port::JoinGroup>().at(0).port, 901U);
  meet(2);
  EXPECT_EQ(only<TrainingJoined>().outcome, Outcome::kOk);
  EXPECT_EQ(only<TrainingJoined>().digest, (Digest128{5, 6}));
  rank.request(kController, kTrainLoopSlot, 51, JoinTraining{2, 7, 1, 901});  // Asked anew: answered.
  EXPECT_EQ(only<TrainingJoined>().digest, (Digest128{5, 6}));
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
  rank.request(kController, kTrainLoopSlot, 49, JoinTraining{1, 0, 0, 900});
  EXPECT_EQ(only<TrainingJoined>().outcome, Outcome::kRefused);
  train(9, 8, 0, 2);
  EXPECT_EQ(rank.effects<port::StartCompute>().size(), 1U);
}

TEST_F(TrainRankTest, ALateEndOfADroppedStepChangesNothing) {
  train(1, 1, 0);
  reduce();
  const auto stepping = rank.effects<port::StartCompute>().at(0);
  join(2, 0);
  const auto load = rank.effects<port::StartCompute>().at(0);
  EXPECT_EQ(load.what, port::ComputeKind::kLoadModel);  // The step may have changed them.
  rank.feed(port::ComputeDone{stepping.op, stepping.what, Outcome::kOk, 1, 1, 0, {3, 4}});
  EXPECT_TRUE(rank.is_silent());
  rank.feed(port::ComputeDone{load.op, load.what, Outcome::kOk, 0, 0, 0, {1, 1}});
  meet(2);
  EXPECT_EQ(rank.protocol().version(), 0U);
  EXPECT_EQ(only<TrainingJoined>().digest, Digest128{});
}

TEST_F(TrainRankTest, ALaterTrainingEpochTakesOverOneThatIsBeingJoined) {
  rank.request(kController, kTrainLoopSlot, 50, JoinTraining{2, 7, 1, 901});
  rank.request(kController, kTrainLoopSlot, 51, JoinTraining{3, 7, 1, 902});
  EXPECT_TRUE(rank.effects<port::AbortGroup>().empty());  // It is being aborted.
  EXPECT_EQ(only<TrainingJoined>().outcome, Outcome::kAborted);
  rank.feed(port::GroupAborted{training_group(1)});
  end_compute();
  EXPECT_EQ(rank.effects<port::JoinGroup>().at(0).group, training_group(3));
  rank.request(kController, kTrainLoopSlot, 52, JoinTraining{4, 7, 1, 903});  // Now a group of epoch 3 may exist.
  EXPECT_EQ(rank.effects<port::AbortGroup>().at(0).group, training_group(3));
  meet(3, Outcome::kAborted);
  EXPECT_TRUE(rank.is_silent());
  rank.feed(port::GroupAborted{training_group(3)});
  end_compute();
  meet(4);
  EXPECT_EQ(only<TrainingJoined>().training_epoch, 4U);
}

TEST_F(TrainRankTest, ACheckpointThatCannotBeReadFailsTheJoin) {
  join(2, 7);
  end_compute(Outcome::kFailed);
  EXPECT_EQ(only<TrainingJoined>().outcome, Outcome::kFailed);
  EXPECT_TRUE(rank.effects<port::JoinGroup>().empty());
  EXPECT_FALSE(rank.protocol().joined());
}

TEST_F(TrainRankTest, ARankLeavesItsGroupOnceWhenTheRunIsOver) {
  rank.request(kController, kTrainLoopSlot, 50, LeaveTraining{7});
  EXPECT_TRUE(rank.effects<port::LeaveGroup>().empty());
  rank.request(kController, kTrainLoopSlot, 51, LeaveTraining{1});
  EXPECT_EQ(rank.effects<port::LeaveGroup>().at(0).group, training_group(1));
  rank.request(kController, kTrainLoopSlot, 52, LeaveTraining{1});
  EXPECT_TRUE(rank.effects<port::LeaveGroup>().empty());
  EXPECT_EQ(rank.sends<Ack>().size(), 1U);
}

// ---- Checkpoints ----

TEST_F(TrainRankTest, ACheckpointIsWrittenOnceAndOnlyOfTheVersionHeld) {
  make(1, 1);
  rank.request(kController, kTrainLoopSlot, 200, SaveCheckpoint{1, 2, 0});
  EXPECT_EQ(only<CheckpointSaved>().outcome, Outcome::kMismatch);
  rank.request(kController, kTrainLoopSlot, 201, SaveCheckpoint{2, 1, 0});
  EXPECT_EQ(only<CheckpointSaved>().outcome, Outcome::kRefused);
  rank.request(kController, kTrainLoopSlot, 202, SaveCheckpoint{1, 1, 1});
  EXPECT_EQ(rank.effects<port::StartCompute>().at(0).amount, 1U);
  end_compute();
  EXPECT_FALSE(rank.notes<port::CheckpointRank>().at(0).restored);
  EXPECT_EQ(only<CheckpointSaved>().digest, (Digest128{3, 4}));
  rank.request(kController, kTrainLoopSlot, 203, SaveCheckpoint{1, 1, 1});
  EXPECT_TRUE(rank.effects<port::StartCompute>().empty());
  EXPECT_EQ(only<CheckpointSaved>().digest, (Digest128{3, 4}));
}

}  // namespace
}  // namespace areal::proto
