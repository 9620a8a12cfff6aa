// The tensor store: content of an id never changes, and dropping is a success however often it is asked.
#include "engine/proto/tensor_store.h"

#include <gtest/gtest.h>

#include "engine/proto/cluster.h"
#include "tests/unit/effects.h"

namespace areal::proto {
namespace {

using test::Driven;

constexpr NodeId kController{1};
constexpr NodeId kTrainer{2};
constexpr Digest128 kDigest{5, 6};

class TensorStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { store.start(); }
  // `request` is its own for every new one.
  void put(std::uint64_t request, std::uint64_t shard, Digest128 digest = kDigest) {
    store.request(kController, kPoolSlot, request, PutShard{{shard}, 100, digest});
  }
  Driven<TensorStore> store{TensorStore({.shard_limit = 2})};
};

TEST_F(TensorStoreTest, APutAskedTwiceStoresOnceAndIsAnsweredTwice) {
  put(1, 7);
  EXPECT_EQ(store.notes<port::ShardStored>().size(), 1U);
  EXPECT_EQ(store.sends<Ack>().size(), 1U);
  put(1, 7);  // The answer was lost.
  EXPECT_TRUE(store.notes<port::ShardStored>().empty());
  EXPECT_EQ(store.sends<Ack>().size(), 1U);
  put(2, 7);  // Asked anew.
  EXPECT_TRUE(store.notes<port::ShardStored>().empty());
  EXPECT_EQ(store.sends<Ack>().size(), 1U);
}

TEST_F(TensorStoreTest, OtherContentForAKnownIdIsRefusedAndTheFirstStays) {
  put(1, 7);
  put(2, 7, Digest128{9, 9});
  ASSERT_EQ(store.notes<port::Refused>().size(), 1U);
  EXPECT_EQ(store.notes<port::Refused>()[0].detail, 7U);
  EXPECT_TRUE(store.sends<Ack>().empty());
  store.request(kTrainer, kTrainRankSlot, 1, FetchShard{{7}, {1}});
  const auto sent = store.sends<ShardData>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(from_record<ShardData>(sent[0].body).digest, kDigest);
}

TEST_F(TensorStoreTest, AFullStoreRefuses) {
  put(1, 1);
  put(2, 2);
  put(3, 3);
  EXPECT_EQ(store.notes<port::Refused>().size(), 1U);
  EXPECT_TRUE(store.sends<Ack>().empty());
  EXPECT_EQ(store.protocol().shards().size(), 2U);
}

TEST_F(TensorStoreTest, AnUnknownShardIsRefused) {
  store.request(kTrainer, kTrainRankSlot, 1, FetchShard{{8}, {1}});
  const auto sent = store.sends<ShardData>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(from_record<ShardData>(sent[0].body).outcome, Outcome::kRefused);
}

// A restarted source is empty, and a second consumer finds nothing to drop: both are success.
TEST_F(TensorStoreTest, DroppingAnUnknownShardCountsZeroAndSucceeds) {
  put(1, 7);
  store.request(kTrainer, kTrainRankSlot, 1, FetchShard{{7}, {3}});
  store.request(kController, kDrainSlot, 1, DropShard{{7}, {3}});  // The drain's first request, not the pool's.
  ASSERT_EQ(store.sends<Dropped>().size(), 1U);
  EXPECT_EQ(from_record<Dropped>(store.sends<Dropped>()[0].body).count, 1U);
  ASSERT_EQ(store.notes<port::ShardsDropped>().size(), 1U);
  EXPECT_EQ(store.notes<port::ShardsDropped>()[0].left, 0U);
  store.request(kController, kDrainSlot, 2, DropShard{{7}, {3}});
  ASSERT_EQ(store.sends<Dropped>().size(), 1U);
  EXPECT_EQ(from_record<Dropped>(store.sends<Dropped>()[0].body).count, 0U);
  EXPECT_TRUE(store.reload(TensorStore({.shard_limit = 2})));
}

}  // namespace
}  // namespace areal::proto
