// The staleness formula at the numbers that users know.
#include "engine/proto/staleness.h"

#include <gtest/gtest.h>

#include "engine/base/state.h"

namespace areal::proto {
namespace {

std::int64_t capacity_of(StalenessLimits limits, std::int64_t version, std::int64_t accepted = 0,
                         std::int64_t running = 0) {
  StalenessCounters counters;
  counters.accepted = accepted;
  counters.running = running;
  return capacity(limits, counters, version);
}

TEST(Staleness, CapacityIsTheSmallerOfSlotsAndAge) {
  EXPECT_EQ(capacity_of({10, 4, 2}, 0), 10);
  EXPECT_EQ(capacity_of({100, 32, 10}, 0), 100);
  EXPECT_EQ(capacity_of({5, 8, 10}, 0, 0, 3), 2);
  EXPECT_EQ(capacity_of({100, 4, 2}, 0), 12);
  EXPECT_EQ(capacity_of({1000, 4, 2}, 5), 32);
  EXPECT_EQ(capacity_of({20, 4, 2}, 0, 5), 7);
  EXPECT_EQ(capacity_of({100, 4, 2}, 0, 12), 0);
  EXPECT_EQ(capacity_of({3, 4, 2}, 0, 0, 10), -7);
  EXPECT_EQ(capacity_of({0, 0, 0}, 0), 1);
}

TEST(Staleness, VersionsOpenOneBatchEach) {
  EXPECT_EQ(capacity_of({100, 8, 0}, 0), 8);
  EXPECT_EQ(capacity_of({100, 8, 0}, 5), 48);
  EXPECT_EQ(capacity_of({10000, 8, 2}, 1'000'000), 10000);
  for (const std::int64_t version : {0, 1, 10, 100, 1000}) {
    EXPECT_EQ(capacity_of({1000, 32, 5}, version), std::min<std::int64_t>(1000, (6 + version) * 32));
  }
  EXPECT_EQ(capacity_of({32, 16, 2}, 1, 14), 32);
}

// An evaluation client has no age limit in practice; its product must not overflow.
TEST(Staleness, EvaluationLimitDoesNotOverflow) { EXPECT_EQ(capacity_of({64, 512, 1'000'000'000'000}, 1000), 64); }

TEST(Staleness, RejectionGivesItsSlotBack) {
  StalenessManager manager({10, 8, 2});
  for (int i = 0; i < 10; ++i) manager.enqueue(), manager.submit(), manager.reject();
  EXPECT_EQ(manager.capacity(), 10);
  EXPECT_EQ(manager.counters().rejected, 10);
}

TEST(Staleness, RecoveryStartsAsAFreshRunWould) {
  for (const std::int64_t version : {0, 5, 10, 50}) {
    StalenessManager manager({1000, 16, 2});
    manager.recover(version);
    EXPECT_EQ(manager.capacity(), 48);
    for (int i = 0; i < 5; ++i) manager.submit();
    EXPECT_EQ(manager.capacity(), 43);
  }
}

TEST(Staleness, SharesAreAtLeastOne) {
  const StalenessLimits share = share_of({64, 3, 2}, 8);
  EXPECT_EQ(share.max_concurrent, 8);
  EXPECT_EQ(share.batch, 1);
  EXPECT_EQ(pending_limit(share), 3);
}

TEST(Staleness, StateIsDigested) {
  StalenessManager manager({10, 8, 2});
  const Digest128 before = state_digest(manager);
  manager.enqueue();
  EXPECT_NE(state_digest(manager), before);
}

}  // namespace
}  // namespace areal::proto
