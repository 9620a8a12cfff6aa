// Micro-batches, the schedule of steps, padding and dispatch to ranks.
#include "engine/algo/microbatches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "engine/algo/dispatch.h"
#include "engine/algo/padding.h"
#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

MicrobatchSpec spec_of(Packer packer, std::int64_t max_tokens, std::int64_t divisor) {
  MicrobatchSpec spec;
  spec.packer = packer;
  spec.max_tokens = max_tokens;
  spec.divisor = divisor;
  return spec;
}

TEST(Microbatches, AreSortedAndWithinTheLimit) {
  Rng rng(1);
  for (const Packer packer : {Packer::kFirstFit, Packer::kDifferencing}) {
    std::vector<std::int64_t> lengths;
    for (int at = 0; at < 30; ++at) lengths.push_back(draw_between(rng, 1, 50));
    const auto groups = microbatches(lengths, spec_of(packer, 100, 1)).value();
    EXPECT_TRUE(std::ranges::is_sorted(groups));
    for (const auto& group : groups) EXPECT_TRUE(std::ranges::is_sorted(group));
    EXPECT_LE(std::ranges::max(group_sums(lengths, groups)), 100);
  }
  EXPECT_FALSE(microbatches(std::vector<std::int64_t>{1}, MicrobatchSpec{}));
  EXPECT_FALSE(packer_from("FFD"));
}

TEST(Microbatches, RanksAgreeOnTheirNumber) {
  Rng rng(2);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<std::int64_t>> ranks(3);
    for (auto& rank : ranks) {
      for (int at = 0; at < 20; ++at) rank.push_back(draw_between(rng, 1, round % 2 == 0 ? 50 : 100));
    }
    const auto all = agreed_microbatches(ranks, spec_of(Packer::kFirstFit, 100, 2)).value();
    for (const auto& groups : all) {
      EXPECT_EQ(groups.size(), all[0].size());
      EXPECT_EQ(groups.size() % 2, 0U);
    }
  }
  const std::vector<std::vector<std::int64_t>> uneven = {{90, 90, 90}, {1}};
  EXPECT_FALSE(agreed_microbatches(uneven, spec_of(Packer::kFirstFit, 100, 1)));
}

// Every step has a real mini-batch on some rank; every rank runs each of its own once.
TEST(StepSchedule, NoStepIsEmptyAndNothingIsLost) {
  Rng rng(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::int64_t> counts;
    for (std::int64_t rank = draw_between(rng, 1, 6); rank > 0; --rank) counts.push_back(draw_between(rng, 0, 5));
    counts[0] += 1;
    const auto schedule = step_schedule(counts, draw_between(rng, 1, 12)).value();
    std::vector<int> real(schedule.steps, 0);
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      std::vector<int> seen(static_cast<std::size_t>(counts[rank]), 0);
      ASSERT_EQ(schedule.slots[rank].size(), schedule.steps);
      for (std::size_t step = 0; step < schedule.steps; ++step) {
        if (!schedule.slots[rank][step]) continue;
        ++seen[*schedule.slots[rank][step]];
        ++real[step];
      }
      EXPECT_EQ(std::ranges::count(seen, 1), counts[rank]);
    }
    EXPECT_EQ(std::ranges::count(real, 0), 0);
  }
  EXPECT_FALSE(step_schedule(std::vector<std::int64_t>{0, 0}, 2));
  EXPECT_FALSE(step_schedule(std::vector<std::int64_t>{1, -1}, 2));
  EXPECT_FALSE(step_schedule(std::vector<std::int64_t>{1}, 0));
  EXPECT_FALSE(step_schedule(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), 1}, 2));
}

TEST(Padding, TheLeastMultiple) {
  const std::int64_t cases[][4] = {{8, 4, 1, 8},   {7, 4, 1, 8},   {2, 3, 2, 6},
                                   {10, 4, 2, 16}, {10, 4, 3, 12}, {0, 4, 2, 0}};
  for (const auto& [items, ranks, unit, wanted] : cases) EXPECT_EQ(padded_count(items, ranks, unit).value(), wanted);
  EXPECT_FALSE(padded_count(-1, 2, 1));
  EXPECT_FALSE(padded_count(1, 0, 1));
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(padded_count(1, kMost, 2));
  EXPECT_FALSE(padded_count(kMost, 2, 1));
  EXPECT_EQ(padded_count(kMost, kMost, 1).value(), kMost);
}

TEST(Dispatch, UnitsStayWholeAndEveryItemIsOnce) {
  Rng rng(4);
  for (const auto& [ranks, unit, items] : {std::tuple{3U, 2U, 12U}, {4U, 2U, 16U}, {6U, 2U, 26U}, {4U, 3U, 24U}}) {
    std::vector<std::int64_t> tokens;
    for (std::size_t at = 0; at < items; ++at) tokens.push_back(draw_between(rng, 1, 100));
    const auto shards = dispatched(tokens, ranks, unit).value();
    std::vector<std::size_t> all;
    for (const auto& shard : shards) {
      EXPECT_EQ(shard.size() % unit, 0U);
      for (std::size_t at = 0; at < shard.size(); ++at) {
        if (at % unit != 0) {
          EXPECT_EQ(shard[at], shard[at - 1] + 1);
        }
        all.push_back(shard[at]);
      }
    }
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), items);
    for (std::size_t at = 0; at < items; ++at) EXPECT_EQ(all[at], at);
  }
}

TEST(Dispatch, RaggedShardsAndRefusals) {
  const std::vector<std::int64_t> seven(7, 10);
  auto shards = dispatched(seven, 4, 1).value();
  std::ranges::stable_sort(shards, {}, &std::vector<std::size_t>::size);
  EXPECT_EQ(shards[0].size(), 1U);
  EXPECT_EQ(shards[3].size(), 2U);
  EXPECT_FALSE(dispatched(seven, 2, 2));
  EXPECT_FALSE(dispatched(seven, 8, 1));
  EXPECT_FALSE(dispatched(seven, 2, 0));
  EXPECT_FALSE(dispatched(seven, 0, 1));
}

// Padding must not read as version 0 or turn 0, whose tokens would be the oldest of all.
TEST(Padding, LooksLikeAPromptAndComesOffAgain) {
  const std::vector<std::vector<std::int64_t>> versions = {{-1, 3}, {-1, 4, 4, 5}, {}};
  const auto flat = padded_rows<std::int64_t>(versions, kNoVersion, 3);
  EXPECT_EQ(flat, (std::vector<std::int64_t>{-1, 3, -1, -1, -1, 4, 4, 5, -1, -1, -1, -1}));
  const std::vector<std::size_t> lengths = {2, 4, 0};
  EXPECT_EQ(unpadded_rows<std::int64_t>(flat, 4, lengths), versions);
}

}  // namespace
}  // namespace areal::algo
