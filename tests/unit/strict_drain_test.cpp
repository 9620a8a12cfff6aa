// The strict drain: sources before consumers, nothing after a failure, and a receipt only when all are proven empty.
#include "engine/proto/strict_drain.h"

#include <gtest/gtest.h>

#include "tests/unit/effects.h"

namespace areal::proto {
namespace {

using test::Driven;

constexpr TrainBatchId kBatch{4};

// Data heads: yes, no, yes.
ClusterMap small_cluster() {
  ClusterMap cluster;
  cluster.trainers = {{10}, {11}, {12}};
  cluster.data_heads = {0, 2};
  cluster.controller = {1};
  cluster.store = {2};
  return cluster;
}

class StrictDrainTest : public ::testing::Test {
 protected:
  void SetUp() override { drain.start(); }

  void collect(std::uint64_t shard, TrainBatchId batch = kBatch) { drain.tell(kPoolSlot, DrainShard{batch, {shard}}); }
  void clear() { drain.tell(kTrainLoopSlot, ClearBatch{kBatch}); }
  port::Send source_request() { return drain.sends<DropShard>().at(0); }
  void drop(const port::Send& asked, std::uint64_t count = 1) { drain.answer(asked, Dropped{kBatch, count}); }
  // Lets the drain give up on all that is asked.
  void never_answer() {
    for (int tries = 0; tries < 3 && drain.protocol().phase() != DrainPhase::kIdle; ++tries)
      drain.fire({(1ULL << 32) + last_request});
  }
  std::vector<BatchCleared> cleared() { return drain.tells<BatchCleared>(); }

  std::uint64_t last_request = 1;
  Driven<StrictDrain> drain{StrictDrain({.calls = {.tries = 2}}, small_cluster())};
};

TEST_F(StrictDrainTest, EachShardOnceAtTheSourceThenAllHeadsThenAReceipt) {
  for (const std::uint64_t shard : {100, 100, 101}) collect(shard);
  collect(200, TrainBatchId{5});  // Other batches may stay.
  clear();
  EXPECT_EQ(from_record<DropShard>(source_request().body).shard, ShardId{100});
  EXPECT_EQ(drain.effects<port::Send>().size(), 1U);
  drop(source_request());
  EXPECT_EQ(from_record<DropShard>(source_request().body).shard, ShardId{101});
  drop(source_request(), 0);  // Somebody else had dropped it: success.
  const auto consumers = drain.sends<DropBatch>();
  ASSERT_EQ(consumers.size(), 2U);
  EXPECT_EQ(consumers[0].to, NodeId{10});
  EXPECT_EQ(consumers[1].to, NodeId{12});
  drop(consumers[1]);
  EXPECT_TRUE(drain.sends<QueryBatch>().empty());
  drop(consumers[0]);
  const auto queries = drain.sends<QueryBatch>();
  ASSERT_EQ(queries.size(), 2U);
  drain.answer(queries[0], BatchStats{kBatch, 0});
  EXPECT_TRUE(drain.notes<port::Receipt>().empty());
  drain.answer(queries[1], BatchStats{kBatch, 0});
  const auto receipts = drain.notes<port::Receipt>();
  ASSERT_EQ(receipts.size(), 1U);
  EXPECT_EQ(receipts[0].kind, port::ReceiptKind::kDrain);
  EXPECT_EQ(receipts[0].subject, kBatch.value);
  EXPECT_EQ(receipts[0].role, Role::kTrainer);
  EXPECT_EQ(receipts[0].count, 2U);
  EXPECT_EQ(receipts[0].holders, 3U);
  ASSERT_EQ(cleared().size(), 1U);
  EXPECT_EQ(cleared()[0].outcome, Outcome::kOk);
  EXPECT_TRUE(drain.reload(StrictDrain({.calls = {.tries = 2}}, small_cluster())));
}

TEST_F(StrictDrainTest, NothingToDrainIsAReceiptAtOnce) {
  clear();
  ASSERT_EQ(drain.notes<port::Receipt>().size(), 1U);
  EXPECT_EQ(drain.notes<port::Receipt>()[0].count, 0U);
  EXPECT_EQ(drain.notes<port::Receipt>()[0].holders, 0U);
  EXPECT_EQ(cleared().at(0).outcome, Outcome::kOk);
  EXPECT_TRUE(drain.effects<port::Send>().empty());
}

TEST_F(StrictDrainTest, ASourceThatFailsLeavesConsumersUntouched) {
  collect(100);
  collect(101);
  clear();
  drop(source_request());
  last_request = 2;
  never_answer();
  EXPECT_EQ(cleared().at(0).outcome, Outcome::kTimedOut);
  EXPECT_TRUE(drain.sends<DropBatch>().empty());
  EXPECT_TRUE(drain.notes<port::Receipt>().empty());
  clear();  // All of it again, also what had been dropped.
  EXPECT_EQ(from_record<DropShard>(source_request().body).shard, ShardId{100});
}

TEST_F(StrictDrainTest, AHeadThatStillHoldsAShardIsNamed) {
  collect(100);
  clear();
  drop(source_request());
  const auto consumers = drain.sends<DropBatch>();
  for (const port::Send& asked : consumers) drop(asked);
  const auto queries = drain.sends<QueryBatch>();
  ASSERT_EQ(queries.size(), 2U);
  drain.answer(queries[1], BatchStats{kBatch, 1});
  ASSERT_EQ(drain.notes<port::Refused>().size(), 1U);
  EXPECT_EQ(drain.notes<port::Refused>()[0].from, NodeId{12});
  EXPECT_EQ(drain.notes<port::Refused>()[0].detail, 1U);
  drain.answer(queries[0], BatchStats{kBatch, 0});
  EXPECT_EQ(cleared().at(0).outcome, Outcome::kFailed);
  EXPECT_TRUE(drain.notes<port::Receipt>().empty());
}

TEST_F(StrictDrainTest, AHeadThatNeverAnswersFailsTheDrain) {
  collect(100);
  clear();
  drop(source_request());
  drop(drain.sends<DropBatch>().at(0));
  last_request = 3;
  never_answer();
  EXPECT_EQ(cleared().at(0).outcome, Outcome::kTimedOut);
  EXPECT_TRUE(drain.notes<port::Receipt>().empty());
}

TEST_F(StrictDrainTest, ARunningDrainTakesNoNewShardsAndNoOtherBatch) {
  collect(100);
  clear();
  collect(102);
  EXPECT_EQ(drain.notes<port::Refused>().at(0).reason, Refusal::kBusy);
  drain.tell(kTrainLoopSlot, ClearBatch{{9}});
  EXPECT_EQ(cleared().at(0).outcome, Outcome::kRefused);
  clear();
  EXPECT_TRUE(drain.is_silent());
}

}  // namespace
}  // namespace areal::proto
