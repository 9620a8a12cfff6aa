// When a full transfer is due: anchors, requests, and commits that cannot be.
#include "engine/delta/tracker.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/base/state.h"

namespace areal::delta {
namespace {

using port::FullReason;

DeltaTracker seeded(Version base, std::uint64_t anchor_interval = 0) {
  DeltaTracker tracker(anchor_interval);
  tracker.seed(base);
  return tracker;
}

TEST(DeltaTracker, FirstUpdateIsFull) {
  DeltaTracker tracker(20);
  EXPECT_EQ(tracker.reason(), FullReason::kNotSeeded);
  EXPECT_FALSE(tracker.mark_delta_committed(1));
  EXPECT_EQ(tracker.reason(), FullReason::kNotSeeded);
  // A commit that cannot be leaves no request behind: the seed clears everything.
  tracker.seed(3);
  EXPECT_EQ(tracker.reason(), FullReason::kNone);
  EXPECT_EQ(tracker.base_version(), 3U);
  EXPECT_TRUE(tracker.mark_delta_committed(4));
}

TEST(DeltaTracker, AnchorComesAfterAsManyDeltasAsItSays) {
  DeltaTracker tracker(20);
  std::vector<Version> full;
  for (Version version = 1; version <= 45; ++version) {
    if (tracker.reason() != FullReason::kNone) {
      EXPECT_EQ(tracker.reason(), full.empty() ? FullReason::kNotSeeded : FullReason::kAnchorInterval);
      tracker.seed(version);
      full.push_back(version);
    } else {
      ASSERT_TRUE(tracker.mark_delta_committed(version));
    }
    EXPECT_LE(tracker.deltas_since_anchor(), 20U);
  }
  EXPECT_EQ(full, (std::vector<Version>{1, 22, 43}));
}

TEST(DeltaTracker, WithoutAnIntervalThereIsNoAnchor) {
  DeltaTracker tracker = seeded(0);
  for (Version version = 1; version <= 1000; ++version) ASSERT_TRUE(tracker.mark_delta_committed(version));
  EXPECT_EQ(tracker.reason(), FullReason::kNone);
  EXPECT_EQ(tracker.deltas_since_anchor(), 1000U);
}

TEST(DeltaTracker, AnyFullTransferRestartsTheCount) {
  DeltaTracker tracker = seeded(0, 2);
  ASSERT_TRUE(tracker.mark_delta_committed(1));
  EXPECT_EQ(tracker.reason(), FullReason::kNone);
  tracker.request_full(FullReason::kPeerLost);
  EXPECT_EQ(tracker.reason(), FullReason::kPeerLost);
  tracker.seed(2);
  ASSERT_TRUE(tracker.mark_delta_committed(3));
  ASSERT_TRUE(tracker.mark_delta_committed(4));
  EXPECT_EQ(tracker.reason(), FullReason::kAnchorInterval);
}

TEST(DeltaTracker, CommitsMoveTheBaseByOne) {
  DeltaTracker tracker = seeded(5);
  ASSERT_TRUE(tracker.mark_delta_committed(6));
  EXPECT_EQ(tracker.base_version(), 6U);
  EXPECT_EQ(tracker.deltas_since_anchor(), 1U);
}

// A gap means that receivers hold something that no delta was made against.
TEST(DeltaTracker, CommitWithAGapIsRefusedAndTheNextIsFull) {
  for (const Version wrong : {0U, 4U, 5U, 7U}) {
    DeltaTracker tracker = seeded(5);
    EXPECT_FALSE(tracker.mark_delta_committed(wrong)) << wrong;
    EXPECT_EQ(tracker.base_version(), 5U);
    EXPECT_EQ(tracker.deltas_since_anchor(), 0U);
    EXPECT_EQ(tracker.reason(), FullReason::kCommitFailed);
    EXPECT_FALSE(tracker.mark_delta_committed(6));
    tracker.seed(6);
    EXPECT_EQ(tracker.reason(), FullReason::kNone);
  }
}

TEST(DeltaTracker, CommitWhileAFullIsDueIsRefused) {
  DeltaTracker requested = seeded(5);
  requested.request_full(FullReason::kRetry);
  EXPECT_FALSE(requested.mark_delta_committed(6));
  EXPECT_EQ(requested.reason(), FullReason::kRetry);
  EXPECT_EQ(requested.base_version(), 5U);

  DeltaTracker anchored = seeded(5, 1);
  ASSERT_TRUE(anchored.mark_delta_committed(6));
  EXPECT_FALSE(anchored.mark_delta_committed(7));
  EXPECT_EQ(anchored.reason(), FullReason::kCommitFailed);
  EXPECT_EQ(anchored.base_version(), 6U);
}

TEST(DeltaTracker, AnUnseededOneSaysSoWhateverIsRequested) {
  DeltaTracker tracker(1);
  tracker.request_full(FullReason::kPeerLost);
  EXPECT_EQ(tracker.reason(), FullReason::kNotSeeded);
}

TEST(DeltaTracker, ResetForgetsAllButTheInterval) {
  DeltaTracker tracker = seeded(5, 1);
  tracker.request_full(FullReason::kPeerLost);
  tracker.reset();
  EXPECT_EQ(tracker.reason(), FullReason::kNotSeeded);
  EXPECT_FALSE(tracker.base_version().has_value());
  tracker.seed(1);
  ASSERT_TRUE(tracker.mark_delta_committed(2));
  EXPECT_EQ(tracker.reason(), FullReason::kAnchorInterval);
}

TEST(DeltaTracker, SurvivesBeingSaved) {
  DeltaTracker tracker = seeded(5, 3);
  ASSERT_TRUE(tracker.mark_delta_committed(6));
  tracker.request_full(FullReason::kBaseMismatch);
  StateWriter writer;
  writer.value(tracker);
  DeltaTracker restored;
  StateReader reader(writer.words());
  reader.value(restored);
  EXPECT_TRUE(reader.ok() && reader.at_end());
  EXPECT_EQ(restored.base_version(), 6U);
  EXPECT_EQ(restored.deltas_since_anchor(), 1U);
  EXPECT_EQ(restored.reason(), FullReason::kBaseMismatch);
  EXPECT_EQ(state_digest(restored), state_digest(tracker));
}

}  // namespace
}  // namespace areal::delta
