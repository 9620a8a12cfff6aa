// The lock between decoding and writing: one writer, many readers, and pauses that come at any moment.
#include "engine/proto/write_lock.h"

#include <gtest/gtest.h>

namespace areal::proto {
namespace {

using Next = WriteLock::Next;

constexpr LockView kIdle{false, 0, 0};
constexpr LockView kTwoDecode{false, 2, 0};
constexpr LockView kTwoParked{true, 0, 2};

// Looks first and takes later, as if the look stayed true.
constexpr WriterClaim look_then_take(const LockView& view) { return {false, !view.paused, true}; }

TEST(WriteLock, IsGrantedAtOnceWhenNothingDecodes) {
  WriteLock lock;
  EXPECT_TRUE(lock.lets_decode());
  EXPECT_EQ(lock.want(1, kIdle), Next::kGrant);
  EXPECT_FALSE(lock.lets_decode());
}

TEST(WriteLock, ClosesAdmissionAndWaitsForTheLastReader) {
  WriteLock lock;
  EXPECT_EQ(lock.want(1, kTwoDecode), Next::kNothing);
  EXPECT_FALSE(lock.lets_decode());
  EXPECT_EQ(lock.readers_changed({false, 1, 0}), Next::kNothing);
  EXPECT_EQ(lock.readers_changed(kIdle), Next::kGrant);
  EXPECT_EQ(lock.readers_changed(kIdle), Next::kNothing);
}

TEST(WriteLock, ParkedReadersHoldNothing) {
  WriteLock lock;
  EXPECT_EQ(lock.want(1, kTwoDecode), Next::kNothing);
  EXPECT_EQ(lock.readers_changed(kTwoParked), Next::kGrant);
}

TEST(WriteLock, DecodingWaitsForTheCommitNotForTheEndOfTheWrite) {
  WriteLock lock;
  lock.want(5, kIdle);
  lock.ended(5, 4);
  EXPECT_FALSE(lock.lets_decode());
  lock.committed(4);
  EXPECT_FALSE(lock.lets_decode());
  lock.committed(5);
  EXPECT_TRUE(lock.lets_decode());
}

TEST(WriteLock, AWriterThatGivesUpLetsReadersGoOn) {
  for (const LockView& view : {kIdle, kTwoDecode}) {
    WriteLock lock;
    lock.want(5, view);
    lock.ended(4, 4);
    EXPECT_TRUE(lock.lets_decode());
  }
}

TEST(WriteLock, ANewWishReplacesTheOneBefore) {
  WriteLock lock;
  lock.want(5, kIdle);
  EXPECT_EQ(lock.want(6, kIdle), Next::kGrant);
  lock.ended(6, 4);
  lock.committed(5);
  EXPECT_FALSE(lock.lets_decode());
  lock.committed(6);
  EXPECT_TRUE(lock.lets_decode());
}

TEST(WriteLock, ATakeWithoutItsCheckTakesNothing) {
  WriteLock lock(look_then_take);
  EXPECT_EQ(lock.acquire(1, kIdle), Next::kNothing);
  EXPECT_EQ(lock.want(1, kTwoDecode), Next::kAcquireLater);
  EXPECT_EQ(lock.acquire(2, kIdle), Next::kNothing);
  EXPECT_TRUE(lock.lets_decode());
}

// H03, first half: the check saw no pause, the pause parked the readers, the writer waits for them for ever.
TEST(WriteLock, SplitInTwoStepsItWaitsForParkedReaders) {
  WriteLock lock(look_then_take);
  EXPECT_EQ(lock.want(1, kTwoDecode), Next::kAcquireLater);
  EXPECT_EQ(lock.acquire(1, kTwoParked), Next::kNothing);
  EXPECT_TRUE(lock.is_behind_parked(kTwoParked));
  EXPECT_FALSE(lock.lets_decode());
}

// H03, second half: the check saw the pause, a continue came, and decoding runs while the writer writes.
TEST(WriteLock, SplitInTwoStepsItLetsDecodingRunDuringTheWrite) {
  WriteLock lock(look_then_take);
  EXPECT_EQ(lock.want(1, kTwoParked), Next::kAcquireLater);
  EXPECT_EQ(lock.acquire(1, kTwoDecode), Next::kGrant);
  EXPECT_TRUE(lock.lets_decode());
}

}  // namespace
}  // namespace areal::proto
