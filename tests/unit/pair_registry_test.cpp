// The pair state machine.
#include "engine/proto/pair_registry.h"

#include <gtest/gtest.h>

#include "engine/base/state.h"

namespace areal::proto {
namespace {

constexpr PairId kA{1};
constexpr PairId kB{2};

TEST(PairRegistry, RegisteredPairIsFoundAndUnknownIsNot) {
  PairRegistry registry;
  EXPECT_EQ(registry.register_pair(kA, PairMode::kDisk), PairRefusal::kNone);
  ASSERT_NE(registry.get(kA), nullptr);
  EXPECT_EQ(registry.get(kA)->mode, PairMode::kDisk);
  EXPECT_EQ(registry.get(kB), nullptr);
}

TEST(PairRegistry, ReservationIsExclusiveUntilReleased) {
  PairRegistry registry;
  EXPECT_TRUE(registry.try_reserve(kA));
  EXPECT_FALSE(registry.try_reserve(kA));
  registry.release_reservation(kA);
  registry.release_reservation(kA);
  EXPECT_TRUE(registry.try_reserve(kA));
  EXPECT_EQ(registry.register_reserved(kA, PairMode::kAwex), PairRefusal::kNone);
  EXPECT_FALSE(registry.try_reserve(kA));
  registry.release_reservation(kA);  // A registered pair is not a reservation.
  EXPECT_NE(registry.get(kA), nullptr);
}

TEST(PairRegistry, RollbackHoldsTheNameUntilItIsClean) {
  PairRegistry registry;
  ASSERT_TRUE(registry.try_reserve(kA));
  EXPECT_EQ(registry.begin_rollback(kA), PairRefusal::kNone);
  EXPECT_FALSE(registry.try_reserve(kA));
  EXPECT_EQ(registry.register_reserved(kA, PairMode::kAwex), PairRefusal::kNotReserved);
  registry.release_reservation(kA);
  EXPECT_TRUE(registry.try_reserve(kA));
}

TEST(PairRegistry, DuplicateIsRefusedWithTheReferencesText) {
  PairRegistry registry;
  ASSERT_EQ(registry.register_pair(kA, PairMode::kAwex), PairRefusal::kNone);
  const PairRefusal refusal = registry.register_pair(kA, PairMode::kAwex);
  EXPECT_EQ(refusal_text(refusal, "test_pair"), "Pair 'test_pair' already registered");
}

TEST(PairRegistry, UnregisterReturnsThePairOnce) {
  PairRegistry registry;
  EXPECT_TRUE(registry.list().empty());
  ASSERT_EQ(registry.register_pair(kB, PairMode::kAwex), PairRefusal::kNone);
  ASSERT_EQ(registry.register_pair(kA, PairMode::kAwex), PairRefusal::kNone);
  EXPECT_EQ(registry.list(), (std::vector<PairId>{kB, kA}));
  EXPECT_TRUE(registry.unregister(kA).has_value());
  EXPECT_FALSE(registry.unregister(kA).has_value());
  EXPECT_TRUE(registry.unregister(kB).has_value());
  EXPECT_TRUE(registry.list().empty());
}

TEST(PairRegistry, UpdatesAreSerialAndVersionsRise) {
  PairRegistry registry;
  ASSERT_EQ(registry.register_pair(kA, PairMode::kAwex), PairRefusal::kNone);
  const UpdateTicket start = registry.begin_update(kA, 0);
  EXPECT_EQ(start.refusal, PairRefusal::kNone) << "what was loaded may be moved, before anything else was";
  EXPECT_EQ(registry.finish_update(kA, 0, start.attempt), PairRefusal::kNone);
  EXPECT_EQ(registry.begin_update(kA, 0).refusal, PairRefusal::kStaleVersion);
  const UpdateTicket first = registry.begin_update(kA, 1);
  EXPECT_EQ(first.attempt, 1U);
  EXPECT_EQ(registry.begin_update(kA, 2).refusal, PairRefusal::kBusy);
  EXPECT_EQ(registry.finish_update(kA, 1, first.attempt), PairRefusal::kNone);
  EXPECT_EQ(registry.begin_update(kA, 1).refusal, PairRefusal::kStaleVersion);
  EXPECT_EQ(registry.begin_update(kB, 1).refusal, PairRefusal::kUnknown);
}

// A late reply of an earlier attempt must not finish a later one.
TEST(PairRegistry, FailedVersionIsTriedAgainUnderANewAttempt) {
  PairRegistry registry;
  ASSERT_EQ(registry.register_pair(kA, PairMode::kAwex), PairRefusal::kNone);
  const UpdateTicket first = registry.begin_update(kA, 3);
  ASSERT_EQ(registry.fail_update(kA, 3, first.attempt), PairRefusal::kNone);
  EXPECT_EQ(registry.get(kA)->last_version, std::nullopt);
  const UpdateTicket second = registry.begin_update(kA, 3);
  EXPECT_EQ(second.attempt, 2U);
  EXPECT_EQ(registry.finish_update(kA, 3, first.attempt), PairRefusal::kNotUpdating);
  EXPECT_EQ(registry.finish_update(kA, 3, second.attempt), PairRefusal::kNone);
  EXPECT_EQ(registry.get(kA)->last_version, 3U);
}

TEST(PairRegistry, BrokenPairCanOnlyBeTornDown) {
  PairRegistry registry;
  ASSERT_EQ(registry.register_pair(kA, PairMode::kAwex), PairRefusal::kNone);
  ASSERT_EQ(registry.begin_update(kA, 1).refusal, PairRefusal::kNone);
  EXPECT_EQ(registry.begin_teardown(kA), PairRefusal::kBusy);
  EXPECT_EQ(registry.mark_broken(kA), PairRefusal::kNone);
  EXPECT_EQ(registry.begin_update(kA, 2).refusal, PairRefusal::kNotConnected);
  EXPECT_EQ(registry.finish_update(kA, 1, 1), PairRefusal::kNotUpdating);
  EXPECT_EQ(registry.begin_teardown(kA), PairRefusal::kNone);
  EXPECT_FALSE(registry.try_reserve(kA));
  EXPECT_TRUE(registry.unregister(kA).has_value());
  EXPECT_TRUE(registry.try_reserve(kA));
}

TEST(PairRegistry, FullRegistryRefuses) {
  PairRegistry registry(1);
  EXPECT_EQ(registry.register_pair(kA, PairMode::kAwex), PairRefusal::kNone);
  EXPECT_EQ(registry.register_pair(kB, PairMode::kAwex), PairRefusal::kFull);
}

TEST(PairRegistry, DigestFollowsTheStateAndCopiesAreEqual) {
  PairRegistry registry;
  ASSERT_EQ(registry.register_pair(kA, PairMode::kAwex), PairRefusal::kNone);
  const PairRegistry copy = registry;
  EXPECT_EQ(state_digest(copy), state_digest(registry));
  ASSERT_EQ(registry.begin_update(kA, 1).refusal, PairRefusal::kNone);
  EXPECT_NE(state_digest(copy), state_digest(registry));
  StateWriter writer;
  writer.value(registry);
  PairRegistry restored;
  StateReader reader(writer.words());
  reader.value(restored);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(state_digest(restored), state_digest(registry));
}

}  // namespace
}  // namespace areal::proto
