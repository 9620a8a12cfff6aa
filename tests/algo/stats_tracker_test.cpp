// The statistics tracker: what it refuses, what ranks must agree on, who may take what.
#include "engine/algo/stats_tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

using Values = std::vector<float>;
using Kept = std::vector<std::uint8_t>;

// Ranks of one kind each: both know the wider group.
Stats exported(const std::vector<StatRecords>& ranks) {
  std::vector<RankKeys> keys;
  for (const StatRecords& records : ranks) keys.push_back({stat_keys(records), true});
  return reduce_stats(merge_stat_keys(keys).value(), ranks);
}

StatRecords taken(StatsTracker& tracker) { return tracker.take("actor").value(); }

TEST(StatsTracker, NamesAndScopesStandBeforeTheKey) {
  StatsTracker tracker("actor", "ppo");
  ASSERT_TRUE(tracker.scalar("lr", 1));
  tracker.enter("update");
  tracker.enter("loss");
  ASSERT_TRUE(tracker.scalar("x", 2));
  ASSERT_TRUE(tracker.timing("step", 3));
  tracker.leave();
  ASSERT_TRUE(tracker.scalar("y", 4));
  EXPECT_EQ(exported({taken(tracker)}), (Stats{{"ppo/lr", 1},
                                               {"ppo/lr__count", 1},
                                               {"ppo/update/loss/x", 2},
                                               {"ppo/update/loss/x__count", 1},
                                               {"ppo/update/y", 4},
                                               {"ppo/update/y__count", 1},
                                               {"timeperf/step", 3},
                                               {"timeperf/step__count", 1}}));
}

TEST(StatsTracker, EachReductionAndItsDenominator) {
  StatsTracker tracker("actor");
  ASSERT_TRUE(tracker.denominator("d", Kept{1, 0, 1}));
  for (const auto& [key, reduction] : std::vector<std::pair<std::string, Reduction>>{{"mean", Reduction::kAverage},
                                                                                     {"sum", Reduction::kSum},
                                                                                     {"low", Reduction::kMinimum},
                                                                                     {"high", Reduction::kMaximum}}) {
    ASSERT_TRUE(tracker.stat(key, "d", Values{2.0F, kNan, 4.0F}, reduction)) << key;
  }
  EXPECT_EQ(exported({taken(tracker)}), (Stats{{"d", 2}, {"high", 4}, {"low", 2}, {"mean", 3}, {"sum", 6}}));
}

TEST(StatsTracker, WhatIsMaskedDoesNotLeak) {
  StatsTracker tracker("actor");
  ASSERT_TRUE(tracker.denominator("d", Kept{1, 0, 0, 0}));
  ASSERT_TRUE(tracker.stat("x", "d", Values{2.0F, kNan, kInfinity, -kInfinity}));
  EXPECT_EQ(exported({taken(tracker)}), (Stats{{"d", 1}, {"x/avg", 2}, {"x/min", 2}, {"x/max", 2}}));
}

TEST(StatsTracker, NothingUnderTheMaskLeavesTheKeyOut) {
  StatsTracker tracker("actor");
  ASSERT_TRUE(tracker.denominator("d", Kept{0, 0}));
  ASSERT_TRUE(tracker.stat("x", "d", Values{1.0F, 2.0F}));
  ASSERT_TRUE(tracker.stat("y", "d", Values{1.0F, 2.0F}, Reduction::kAverage));
  EXPECT_EQ(exported({taken(tracker)}), (Stats{{"d", 0}}));
}

TEST(StatsTracker, RefusesWhatDoesNotFit) {
  StatsTracker tracker("actor");
  EXPECT_FALSE(tracker.denominator("d", {}));
  EXPECT_FALSE(tracker.stat("x", "d", Values{1.0F})) << "no denominator";
  ASSERT_TRUE(tracker.denominator("d", Kept{1, 1}));
  EXPECT_FALSE(tracker.stat("x", "d", Values{1.0F})) << "another length";
  EXPECT_FALSE(tracker.stat("x", "d", Values{})) << "no values";
  EXPECT_FALSE(tracker.stat("x", "d", Values{1.0F, 2.0F}, Reduction::kScalar));
  tracker.enter("scope");
  EXPECT_FALSE(tracker.stat("x", "d", Values{1.0F, 2.0F})) << "the denominator is of another scope";
  tracker.leave();
  ASSERT_TRUE(tracker.stat("x", "d", Values{1.0F, 2.0F}));
  EXPECT_FALSE(tracker.stat("x", "d", Values{1.0F, 2.0F})) << "a second recording without its mask";
  EXPECT_FALSE(tracker.scalar("x", 1.0));
  EXPECT_FALSE(tracker.denominator("x", Kept{1}));
  ASSERT_TRUE(tracker.denominator("d", Kept{1}));
  EXPECT_FALSE(tracker.stat("x", "d", Values{1.0F}, Reduction::kSum)) << "another reduction than before";
  EXPECT_TRUE(tracker.stat("x", "d", Values{4.0F}));
  EXPECT_EQ(exported({taken(tracker)})[1], (std::pair<std::string, double>{"x/avg", 7.0 / 3}));
}

// Left to std::min and std::max, a NaN would be seen in the average alone.
TEST(StatsTracker, ANanShowsInEveryReduction) {
  for (const Values& values : {Values{kNan, 1.0F}, Values{1.0F, kNan}}) {
    StatsTracker sick("actor");
    ASSERT_TRUE(sick.denominator("d", Kept{1, 1}));
    ASSERT_TRUE(sick.stat("x", "d", values));
    StatsTracker healthy("actor");
    ASSERT_TRUE(healthy.denominator("d", Kept{1}));
    ASSERT_TRUE(healthy.stat("x", "d", Values{2.0F}));
    const std::vector<StatRecords> ranks = {taken(sick), taken(healthy)};
    for (const auto& both : {ranks, std::vector<StatRecords>{ranks[1], ranks[0]}}) {
      std::size_t seen = 0;
      for (const auto& [key, value] : exported(both)) {
        if (key == "d") continue;
        EXPECT_TRUE(std::isnan(value)) << key;
        ++seen;
      }
      EXPECT_EQ(seen, 3U) << "average, minimum and maximum";
    }
  }
}

// How a batch is cut over ranks and recordings does not matter.
TEST(StatsTracker, ShardingDoesNotMatter) {
  const Values values = {1.5F, -2.0F, 4.0F, 8.25F, -16.0F, 0.5F};
  const Kept mask = {1, 1, 0, 1, 1, 1};
  const auto recorded = [&](std::vector<std::size_t> cuts) {
    StatsTracker tracker("actor");
    for (std::size_t at = 0; at + 1 < cuts.size(); ++at) {
      const std::size_t length = cuts[at + 1] - cuts[at];
      EXPECT_TRUE(tracker.denominator("d", std::span(mask).subspan(cuts[at], length)));
      EXPECT_TRUE(tracker.stat("x", "d", std::span(values).subspan(cuts[at], length)));
    }
    return taken(tracker);
  };
  const Stats whole = exported({recorded({0, 6})});
  EXPECT_EQ(exported({recorded({0, 1, 3, 6})}), whole);
  EXPECT_EQ(exported({recorded({0, 2}), recorded({2, 6})}), whole);
  EXPECT_EQ(exported({recorded({}), recorded({2, 6}), recorded({0, 1, 2})}), whole);
}

// Every rank asks for the same collectives, in the same order, though each recorded something else. From what a rank
// itself recorded they would not be the same, and would wait for each other for ever.
TEST(StatsTracker, RanksStayInLockstep) {
  StatsTracker first("actor");
  StatsTracker second("actor");
  ASSERT_TRUE(first.denominator("d", Kept{1}));
  ASSERT_TRUE(first.stat("z", "d", Values{1.0F}));
  ASSERT_TRUE(first.stat("a", "d", Values{2.0F}, Reduction::kAverage));
  ASSERT_TRUE(second.scalar("lr", 0.5));
  const std::vector<StatRecords> ranks = {taken(first), taken(second)};
  const std::vector<StatKey> keys_first = stat_keys(ranks[0]);
  const std::vector<StatKey> keys_second = stat_keys(ranks[1]);
  const auto merged = merge_stat_keys(std::vector<RankKeys>{{keys_first, false}, {keys_second, false}}).value();
  const auto turned = merge_stat_keys(std::vector<RankKeys>{{keys_second, false}, {keys_first, false}}).value();
  EXPECT_EQ(stat_collectives(merged), stat_collectives(turned));
  EXPECT_EQ(stat_collectives(merged).size(), 2U + 1U + 2U + 4U);
  EXPECT_NE(stat_collectives(keys_first), stat_collectives(keys_second)) << "the wrong form is not told apart";
  EXPECT_EQ(reduce_stats(merged, ranks),
            (Stats{{"a", 2}, {"d", 1}, {"lr", 0.5}, {"lr__count", 1}, {"z/avg", 1}, {"z/min", 1}, {"z/max", 1}}));
}

TEST(StatsTracker, RanksThatRecordAKeyDifferentlyAreToldSo) {
  StatsTracker first("actor");
  StatsTracker second("actor");
  ASSERT_TRUE(first.scalar("x", 1));
  ASSERT_TRUE(second.denominator("x", Kept{1}));
  const std::vector<RankKeys> keys = {{stat_keys(taken(first)), false}, {stat_keys(taken(second)), false}};
  EXPECT_EQ(merge_stat_keys(keys).error().code, Errc::kInvalid);
}

TEST(StatsTracker, AWideKeyNeedsItsGroupOnRanksThatLackIt) {
  StatsTracker first("actor");
  StatsTracker second("actor");
  ASSERT_TRUE(first.denominator("d", Kept{1, 1}));
  ASSERT_TRUE(first.stat("x", "d", Values{1.0F, 3.0F}));
  ASSERT_TRUE(first.reduce_widely("x"));
  EXPECT_FALSE(first.reduce_widely("y"));
  const std::vector<StatRecords> ranks = {taken(first), taken(second)};
  std::vector<RankKeys> keys = {{stat_keys(ranks[0]), false}, {stat_keys(ranks[1]), false}};
  EXPECT_EQ(merge_stat_keys(keys).error().code, Errc::kUnsupported);
  keys[1].knows_wide_group = true;
  const auto collectives = stat_collectives(merge_stat_keys(keys).value());
  ASSERT_EQ(collectives.size(), 5U) << "the denominator's, and the key's sum, count, minimum and maximum";
  EXPECT_FALSE(collectives[0].wide);
  for (std::size_t at = 1; at < 5; ++at) EXPECT_TRUE(collectives[at].wide);
}

// Whichever rank says so: else one would wait in the wider group and the other in the usual one.
TEST(StatsTracker, AKeyIsWideForAllWhereOneRankSaysSo) {
  StatsTracker wide("actor");
  StatsTracker usual("actor");
  for (StatsTracker* tracker : {&wide, &usual}) ASSERT_TRUE(tracker->scalar("x", 1));
  ASSERT_TRUE(wide.reduce_widely("x"));
  const std::vector<StatKey> of_wide = stat_keys(taken(wide));
  const std::vector<StatKey> of_usual = stat_keys(taken(usual));
  const auto merged = merge_stat_keys(std::vector<RankKeys>{{of_usual, true}, {of_wide, true}}).value();
  EXPECT_EQ(merged, merge_stat_keys(std::vector<RankKeys>{{of_wide, true}, {of_usual, true}}).value());
  for (const StatCollective& collective : stat_collectives(merged)) EXPECT_TRUE(collective.wide);
  EXPECT_EQ(merge_stat_keys(std::vector<RankKeys>{{of_usual, false}, {of_wide, true}}).error().code,
            Errc::kUnsupported);
}

// Two roles in one process: each has a tracker of its own. With one that both record to, the first export would take
// the other's records along, and leave nothing.
TEST(StatsTracker, OnlyItsOwnerTakesTheRecords) {
  StatsTracker actor("actor");
  StatsTracker rollout("rollout");
  ASSERT_TRUE(actor.scalar("loss", 1));
  ASSERT_TRUE(rollout.scalar("reward", 2));
  EXPECT_FALSE(actor.take("rollout"));
  EXPECT_EQ(exported({rollout.take("rollout").value()}), (Stats{{"reward", 2}, {"reward__count", 1}}));
  EXPECT_EQ(exported({actor.take("actor").value()}), (Stats{{"loss", 1}, {"loss__count", 1}}));
  EXPECT_TRUE(taken(actor).empty()) << "taking clears";
}

TEST(Stats, JoiningKeepsTheLastOfARepeatedKey) {
  const JoinedStats joined = join_stats(std::vector<Stats>{{{"a", 1}, {"b", 2}}, {{"b", 3}}});
  EXPECT_EQ(joined.stats, (Stats{{"a", 1}, {"b", 3}}));
  EXPECT_EQ(joined.repeated, (std::vector<std::string>{"b"}));
}

TEST(Stats, WorkersWithoutACountDoNotWeighIn) {
  const std::vector<Stats> workers = {{{"x", 4}, {"x__count", 1}},
                                      {{"x", std::numeric_limits<double>::quiet_NaN()}, {"x__count", 0}},
                                      {{"x", 1}, {"x__count", 2}, {"y", 5}}};
  EXPECT_EQ(average_workers(workers), (Stats{{"x", 2}, {"y", 5}}));
  EXPECT_TRUE(average_workers(std::vector<Stats>{{{"x", 1}, {"x__count", 0}}}).empty());
  EXPECT_TRUE(average_workers({}).empty());
}

}  // namespace
}  // namespace areal::algo
