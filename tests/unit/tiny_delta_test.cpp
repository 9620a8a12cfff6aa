// Deltas of the tiny engine: what they leave out did not change, and what cannot be inverted is not sent as one.
#include "engine/node/tiny_delta.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/base/rng.h"
#include "tests/unit/delta_fleet.h"

namespace areal::test {
namespace {

using config::ParallelStrategy;

constexpr FleetLayout kCopies{.train = {.dp = 2, .tp = 2}, .infer = {.tp = 4}, .engines = 2};

class DeltaLayouts : public testing::TestWithParam<FleetLayout> {};

INSTANTIATE_TEST_SUITE_P(
    All, DeltaLayouts,
    testing::Values(FleetLayout{}, FleetLayout{.train = {.dp = 4}, .infer = {.tp = 2}}, kCopies,
                    FleetLayout{.train = {.dp = 4, .ep = 4}, .infer = {.tp = 4, .ep = 2}, .engines = 2},
                    FleetLayout{.train = {.dp = 4, .ep = 2}, .infer = {.tp = 2}, .window_bytes = 100'000},
                    FleetLayout{.train = {.dp = 2, .tp = 2, .pp = 2}, .infer = {.tp = 2, .pp = 2}},
                    FleetLayout{"qwen3-0.6b", {.dp = 2, .tp = 2}, {.tp = 2}, 3},
                    FleetLayout{"qwen3-30b-a3b", {.dp = 8, .ep = 8}, {.tp = 4, .ep = 4}, 2}));

TEST_P(DeltaLayouts, EnginesFedByDeltasHoldTheSameBits) {
  DeltaFleet fleet(GetParam());
  fleet.step(1);
  EXPECT_FALSE(fleet.update().may_be_delta()) << "nothing is known of what the engines hold";
  EXPECT_EQ(fleet.wrong(), 0U);
  std::uint64_t held = 0;
  for (const node::TinyTrainer& trainer : fleet.trainers) held += trainer.wire().size();
  for (std::uint64_t seed = 2; seed <= 6; ++seed) {
    fleet.step(seed);
    const DeltaFleet::Found found = fleet.update();
    EXPECT_TRUE(found.may_be_delta()) << seed;
    EXPECT_GT(found.changed, fleet.always_sent());
    EXPECT_LT(found.changed, held) << "a delta that sends everything proves nothing";
    EXPECT_EQ(fleet.wrong(), 0U) << seed;
  }
}

TEST_P(DeltaLayouts, WithoutAStepMasksHoldOnlyWhatIsAlwaysSent) {
  DeltaFleet fleet(GetParam());
  fleet.step(1);
  fleet.update();
  fleet.step(2, 0);
  const DeltaFleet::Found found = fleet.update();
  EXPECT_TRUE(found.may_be_delta());
  EXPECT_EQ(found.contributed, 0U);
  EXPECT_EQ(found.changed, fleet.always_sent());
  EXPECT_EQ(fleet.wrong(), 0U);
  fleet.step(3);
  EXPECT_TRUE(fleet.update().may_be_delta());
  EXPECT_EQ(fleet.wrong(), 0U);
}

TEST_P(DeltaLayouts, TwoStepsAreSentInFull) {
  DeltaFleet fleet(GetParam());
  fleet.step(1);
  fleet.update();
  fleet.step(2, 2);
  EXPECT_TRUE(fleet.update().full);
  EXPECT_EQ(fleet.wrong(), 0U);
  fleet.step(3);
  EXPECT_TRUE(fleet.update().may_be_delta());
}

// Every owner's slice of the correction must reach every copy: two slices of the same element would add up.
TEST_P(DeltaLayouts, SlicesOfCopiesCoverEachPartOnce) {
  const DeltaFleet fleet(GetParam());
  for (std::uint32_t rank = 0; rank < fleet.trainers.size(); ++rank) {
    const std::vector<node::TinyPart>& parts = fleet.shape->trainers[rank].parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<int> owners(parts[i].count, 0);
      for (const std::uint32_t other : fleet.copies_of(rank, parts[i].replica_kind)) {
        const node::TinyPart& same = fleet.shape->trainers[other].parts[i];
        ASSERT_EQ(same.tensor, parts[i].tensor);
        for (std::uint32_t k = 0; k < same.owned_count; ++k) ++owners[same.owned_first + k];
      }
      EXPECT_TRUE(std::ranges::all_of(owners, [](int count) { return count == 1; }));
    }
  }
}

TEST(TinyDelta, ARankThatSteppedMoreOftenMakesAllOfItsCopiesFull) {
  for (const ParallelStrategy& train :
       {ParallelStrategy{.dp = 4}, ParallelStrategy{.dp = 4, .ep = 4}, ParallelStrategy{.dp = 2, .tp = 1, .pp = 2}}) {
    DeltaFleet fleet({.train = train});
    fleet.step(1);
    fleet.update();
    fleet.step(2);
    node::TinyTrainer& ahead = fleet.trainers[3];
    ahead.advance(ahead.version(), 3, 1, fleet.shape->optimizer.learning_rate);
    EXPECT_TRUE(fleet.find().full);
    for (std::uint32_t rank = 0; rank < fleet.trainers.size(); ++rank) {
      const std::vector<std::uint32_t> copies = fleet.copies_of(rank, 0);
      const bool is_copy = std::ranges::find(copies, 3U) != copies.end();
      // Compared anew without any word of the others: the sums alone must say it.
      EXPECT_EQ(fleet.trainers[rank].compare(0, false).full, is_copy) << rank;
    }
  }
}

// A change that no step explains, as by hand or by a checkpoint that somebody else loaded.
TEST(TinyDelta, AnEditedElementIsSentInFull) {
  DeltaFleet fleet(kCopies);
  fleet.step(1);
  fleet.update();
  const std::vector<node::TinyPart>& parts = fleet.shape->trainers[1].parts;
  for (const node::TinyPart& part : {parts.front(), parts[parts.size() / 2], parts.back()}) {
    if (fleet.is_router(part)) continue;
    DeltaFleet edited = fleet;
    edited.step(2, 0);
    edited.edit(1, part.first + part.owned_first, 1);  // Too little for a bf16 weight: only the owner's shard shows it.
    EXPECT_TRUE(edited.find().full);
    DeltaFleet other = fleet;
    other.step(2, 0);
    const std::uint32_t not_owned = part.owned_first == 0 ? part.owned_count : 0;
    other.edit(1, part.first + not_owned, 20);  // Not this rank's to step, but its model shows it.
    EXPECT_TRUE(other.find().full);
    EXPECT_TRUE(other.update().full);
  }
}

TEST(TinyDelta, WithoutTheRateOfTheLastStepNothingIsInverted) {
  DeltaFleet fleet(kCopies);
  fleet.step(1);
  fleet.update();
  fleet.step(2);
  fleet.rates[2] = std::nullopt;
  EXPECT_TRUE(fleet.update().full);
  EXPECT_EQ(fleet.wrong(), 0U);
}

// If a wrong rate went unnoticed here, so would one in a run.
TEST(TinyDelta, AWrongRateMissesChanges) {
  DeltaFleet fleet(kCopies);
  fleet.step(1);
  fleet.update();
  fleet.step(2);
  fleet.rates.assign(fleet.trainers.size(), fleet.shape->optimizer.learning_rate * 0.9);
  fleet.find();  // Where all that changed was missed, the empty mask of a changed tensor gives it away.
  EXPECT_GT(fleet.missed(), 0U);
  fleet.transfer(true);
  EXPECT_GT(fleet.wrong(), 0U);
}

TEST(TinyDelta, ACorrectionThatCoversOnlyPartIsNotTrusted) {
  for (std::uint32_t missing = 0; missing < 4; ++missing) {
    DeltaFleet fleet(kCopies);
    fleet.step(1);
    fleet.update();
    fleet.step(2);
    EXPECT_TRUE(fleet.find(missing).full) << missing;
  }
}

TEST(TinyDelta, ARankThatGaveUpMakesItsCopiesFull) {
  DeltaFleet fleet(kCopies);
  fleet.step(1);
  fleet.update();
  fleet.step(2);
  fleet.find({}, 2);
  for (const std::uint32_t rank : fleet.copies_of(2, 0)) EXPECT_TRUE(fleet.trainers[rank].compare(0, false).full);
  // The next update goes from what was acknowledged then.
  fleet.transfer(false);
  fleet.commit();
  fleet.step(3);
  EXPECT_TRUE(fleet.update().may_be_delta());
  EXPECT_EQ(fleet.wrong(), 0U);
}

TEST(TinyDelta, RoutersAreAlwaysSentWhole) {
  DeltaFleet fleet({.train = {.dp = 4, .ep = 2}});
  fleet.step(1);
  fleet.update();
  fleet.step(2);
  fleet.find();
  EXPECT_GT(fleet.always_sent(), 0U);
  bool others_left_out = false;
  for (std::uint32_t rank = 0; rank < fleet.trainers.size(); ++rank) {
    for (const node::TinyPart& part : fleet.shape->trainers[rank].parts) {
      const auto mask = fleet.trainers[rank].delta().mask().subspan(part.first, part.count);
      const bool whole = std::ranges::all_of(mask, [](std::uint8_t bit) { return bit == 1; });
      EXPECT_TRUE(whole || !fleet.is_router(part));
      others_left_out = others_left_out || !whole;
    }
  }
  EXPECT_TRUE(others_left_out);
}

TEST(TinyDelta, TheSizeOfWindowsChangesNoMask) {
  for (const ParallelStrategy& train : {ParallelStrategy{.dp = 4}, ParallelStrategy{.dp = 4, .ep = 2}}) {
    std::vector<std::vector<std::uint8_t>> wanted;
    std::size_t most = 0;
    for (const std::uint64_t bytes : {512'000'000ULL, 40'000ULL, 0ULL}) {
      DeltaFleet fleet({.train = train, .window_bytes = bytes});
      fleet.step(1);
      fleet.update();
      fleet.step(2);
      EXPECT_TRUE(fleet.find().may_be_delta());
      std::vector<std::vector<std::uint8_t>> masks;
      for (node::TinyTrainer& trainer : fleet.trainers) {
        masks.emplace_back(trainer.delta().mask().begin(), trainer.delta().mask().end());
      }
      if (wanted.empty()) wanted = masks;
      EXPECT_EQ(masks, wanted) << bytes;
      EXPECT_GT(fleet.windows(), most) << bytes;
      most = fleet.windows();
    }
  }
}

TEST(TinyDelta, ARestoredTrainerGoesOnBitForBitAndKnowsNothingOfEngines) {
  DeltaFleet fleet(kCopies);
  fleet.step(1);
  fleet.update();
  DeltaFleet twin = fleet;
  for (node::TinyTrainer& trainer : twin.trainers) {
    const std::vector<std::uint64_t> words = trainer.save();
    EXPECT_FALSE(trainer.restore(std::span(words).first(words.size() - 1)));
    EXPECT_GT(trainer.capture(), 0U) << "what is refused forgets nothing";
    EXPECT_TRUE(trainer.restore(words));
    EXPECT_EQ(trainer.capture(), 0U);
  }
  fleet.step(2), twin.step(2);
  for (std::size_t i = 0; i < fleet.trainers.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(fleet.trainers[i].wire(), twin.trainers[i].wire()));
    EXPECT_EQ(fleet.trainers[i].save(), twin.trainers[i].save());
  }
  EXPECT_TRUE(fleet.update().may_be_delta());
  EXPECT_FALSE(twin.update().may_be_delta());
  EXPECT_EQ(twin.wrong(), 0U);
  fleet.step(3), twin.step(3);
  EXPECT_TRUE(twin.update().may_be_delta());
  EXPECT_EQ(twin.wrong(), 0U);
}

// An attempt that nobody acknowledged must not count: the next one goes from what the engines had before.
TEST(TinyDelta, WhatWasCapturedButNotCommittedIsNotAWatermark) {
  DeltaFleet fleet(kCopies);
  fleet.step(1);
  fleet.update();
  fleet.step(2);
  EXPECT_TRUE(fleet.find().may_be_delta());  // And then it fails.
  EXPECT_TRUE(fleet.find().may_be_delta()) << "the same again";
  fleet.step(3);
  EXPECT_TRUE(fleet.update().full) << "two steps from what engines hold";
  EXPECT_EQ(fleet.wrong(), 0U);
}

TEST(TinyReplica, StagedUpdatesSurviveASaveAndAreLandedWholeOrNot) {
  DeltaFleet fleet(kCopies);
  fleet.step(1);
  fleet.update();
  fleet.step(2);
  ASSERT_TRUE(fleet.find().may_be_delta());
  const node::Packed packed = fleet.trainers[0].pack_delta();
  const node::PackedStream& stream = packed.streams.front();
  node::TinyReplica& replica = fleet.fed_by_deltas[stream.receiver];
  const std::uint32_t sender = fleet.trainers[0].transfer_rank();
  ASSERT_GT(stream.updates.indices.size(), 1U);
  node::PackedUpdates wrong = stream.updates;
  wrong.indices.front() = -1;
  EXPECT_FALSE(replica.land(sender, wrong));
  wrong.indices.front() = 0x7FFFFFFF;
  EXPECT_FALSE(replica.land(sender, wrong));
  wrong = stream.updates;
  wrong.bits.pop_back();
  EXPECT_FALSE(replica.land(sender, wrong));
  wrong.indices.pop_back();
  EXPECT_FALSE(replica.land(sender, wrong)) << "the counts say more";
  wrong = stream.updates;
  wrong.counts.push_back(0);
  EXPECT_FALSE(replica.land(sender, wrong));
  EXPECT_FALSE(replica.land(0, stream.updates)) << "a receiver sends nothing";
  EXPECT_EQ(replica.verify().elements, 0U);
  ASSERT_TRUE(replica.land(sender, stream.updates));
  EXPECT_EQ(replica.verify().elements, stream.updates.indices.size());
  const std::vector<std::uint64_t> words = replica.save();
  node::TinyReplica other = fleet.fed_in_full[stream.receiver];
  ASSERT_TRUE(other.restore(words));
  EXPECT_EQ(other.save(), words);
  for (std::size_t cut = 1; cut < words.size(); cut += 7) {
    EXPECT_FALSE(other.restore(std::span(words).first(words.size() - cut)));
  }
  EXPECT_EQ(other.save(), words);
  replica.apply(), other.apply();
  EXPECT_TRUE(std::ranges::equal(replica.live(), other.live()));
}

// Whatever happens between two updates, engines come to hold the trainers' bytes.
TEST(TinyDelta, AnyScheduleOfStepsEndsInTheSameBits) {
  constexpr std::uint64_t kSchedules = 150;
  constexpr std::uint64_t kUpdates = 8;
  const std::vector<DeltaFleet> fresh{DeltaFleet({.train = {.dp = 2, .tp = 2}, .infer = {.tp = 2}}),
                                      DeltaFleet({.train = {.dp = 4, .ep = 2}, .window_bytes = 50'000})};
  std::uint64_t deltas = 0;
  std::uint64_t empty = 0;
  std::uint64_t fulls = 0;
  for (std::uint64_t schedule = 0; schedule < kSchedules; ++schedule) {
    Rng rng(schedule);
    DeltaFleet fleet = fresh[schedule % fresh.size()];
    std::vector<std::vector<std::uint64_t>> checkpoint;
    for (const node::TinyTrainer& trainer : fleet.trainers) checkpoint.push_back(trainer.save());
    for (std::uint64_t update = 0; update < kUpdates; ++update) {
      const std::uint64_t what = rng.draw_below(16);
      const std::uint64_t seed = rng.draw_below(1'000'000);
      if (what < 10) fleet.step(seed);
      if (what == 10) fleet.step(seed, 0);  // Skipped: a gradient was not finite.
      if (what == 11) fleet.step(seed, 2 + rng.draw_below(2));
      if (what == 12) {
        for (std::size_t i = 0; i < checkpoint.size(); ++i) {
          const node::TinyDelta known = fleet.trainers[i].delta();
          EXPECT_TRUE(fleet.trainers[i].restore(checkpoint[i]));
          if (seed % 2 == 0) fleet.trainers[i].delta() = known;  // Nobody told the detector.
        }
      }
      if (what == 13) {
        for (std::size_t i = 0; i < checkpoint.size(); ++i) checkpoint[i] = fleet.trainers[i].save();
        fleet.step(seed);
      }
      if (what == 14) {
        fleet.step(seed);
        fleet.find();  // An attempt that fails.
        if (seed % 2 == 0) fleet.step(seed + 1);
      }
      if (what == 15) {
        fleet.step(seed);
        fleet.rates[seed % fleet.rates.size()] = std::nullopt;
      }
      const DeltaFleet::Found found = fleet.update();
      deltas += found.may_be_delta() ? 1 : 0;
      fulls += found.may_be_delta() ? 0 : 1;
      empty += found.may_be_delta() && found.contributed == 0 ? 1 : 0;
      ASSERT_EQ(fleet.wrong(), 0U) << "schedule " << schedule << ", update " << update << ", case " << what;
    }
  }
  EXPECT_GT(deltas, kSchedules * kUpdates / 3);
  EXPECT_GT(empty, 10U);
  EXPECT_GT(fulls, kSchedules);
}

}  // namespace
}  // namespace areal::test
