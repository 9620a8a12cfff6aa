// Recursive halving: who meets whom, in one order that all ranks share.
#include "engine/delta/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace areal::delta {
namespace {

// A pair that never meets keeps old weights; one that meets twice writes them twice.
TEST(RecursiveSchedule, EveryOrderedPairMeetsOnce) {
  for (const std::uint32_t world : {1U, 2U, 4U, 8U, 16U, 32U}) {
    std::vector<std::uint32_t> sent(std::size_t{world} * world, 0);
    std::vector<std::uint32_t> received(sent.size(), 0);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const auto meetings = recursive_schedule(world, rank);
      ASSERT_TRUE(meetings);
      EXPECT_EQ(meetings->size(), 2 * (world - 1));
      for (const Meeting& meeting : *meetings) {
        const std::size_t pair =
            meeting.sends ? rank * std::size_t{world} + meeting.peer : meeting.peer * std::size_t{world} + rank;
        ++(meeting.sends ? sent : received)[pair];
      }
    }
    for (std::uint32_t a = 0; a < world; ++a) {
      for (std::uint32_t b = 0; b < world; ++b) {
        EXPECT_EQ(sent[a * std::size_t{world} + b], a == b ? 0U : 1U);
        EXPECT_EQ(received[a * std::size_t{world} + b], a == b ? 0U : 1U);
      }
    }
  }
}

// Sender and receiver reach their meeting in the same round and phase, else both wait for ever.
TEST(RecursiveSchedule, SlotIsTheRoundAndPhaseOfBothSides) {
  for (const std::uint32_t world : {2U, 8U, 16U}) {
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const auto meetings = recursive_schedule(world, rank);
      ASSERT_TRUE(meetings);
      for (const Meeting& meeting : *meetings) {
        const std::uint32_t slot =
            meeting.sends ? schedule_slot(world, rank, meeting.peer) : schedule_slot(world, meeting.peer, rank);
        EXPECT_EQ(slot, 2 * meeting.round + meeting.phase);
        EXPECT_LT(slot, schedule_slots(world));
      }
    }
  }
}

TEST(RecursiveSchedule, RoundsPhasesAndPeersAscend) {
  const auto meetings = recursive_schedule(16, 5);
  ASSERT_TRUE(meetings);
  const auto place = [](const Meeting& meeting) { return std::tuple(meeting.round, meeting.phase, meeting.peer); };
  EXPECT_TRUE(std::ranges::is_sorted(*meetings, {}, place));
  EXPECT_EQ(meetings->front(), (Meeting{8, 0, 0, true}));
  EXPECT_EQ(meetings->back(), (Meeting{4, 3, 1, true}));
  EXPECT_EQ(schedule_slots(16), 8U);
  EXPECT_EQ(schedule_slots(1), 0U);
}

// With three ranks, 0 would never meet 2 (INV-DELTA-POW2).
TEST(RecursiveSchedule, OtherWorldsAndRanksOutsideAreRefused) {
  for (std::uint32_t world = 0; world <= 40; ++world) {
    EXPECT_EQ(check_schedule_world(world).has_value(), std::has_single_bit(world)) << world;
    EXPECT_EQ(recursive_schedule(world, 0).has_value(), std::has_single_bit(world)) << world;
  }
  EXPECT_FALSE(recursive_schedule(4, 4));
}

}  // namespace
}  // namespace areal::delta
