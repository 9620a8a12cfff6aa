// Prompt groups with members missing, and prompt lengths.
#include "engine/algo/prompt_group.h"

#include <gtest/gtest.h>

#include "engine/algo/prompt_length.h"

namespace areal::algo {
namespace {

std::vector<GroupMember> members(std::vector<std::int64_t> rows) {
  std::vector<GroupMember> made;
  for (const std::int64_t own : rows) made.push_back({own < 0 ? std::nullopt : std::optional(own), true});
  return made;
}

TEST(PromptGroup, RefusesMinimaOutsideTheGroup) {
  EXPECT_FALSE(check(GroupRule{0, 1, false, false}));
  EXPECT_FALSE(check(GroupRule{2, 0, false, false}));
  EXPECT_FALSE(check(GroupRule{2, 3, false, false}));
  EXPECT_TRUE(check(GroupRule{2, 2, false, false}));
  EXPECT_FALSE(judge_group({3, 1, false, false}, members({1, 1})));
}

TEST(PromptGroup, MissingMembers) {
  const GroupRule rule{3, 1, false, false};
  const auto kept = judge_group(rule, members({1, -1, 1})).value();
  EXPECT_TRUE(kept.is_kept);
  EXPECT_EQ(kept.rows, 2);
  EXPECT_EQ(kept.counts.trainable, 2);
  const auto none = judge_group(rule, members({-1, -1, -1})).value();
  EXPECT_FALSE(none.is_kept);
  EXPECT_TRUE(none.counts.is_fully_masked);
  const auto below = judge_group({3, 2, false, false}, members({1, -1, -1})).value();
  EXPECT_FALSE(below.is_kept);
  EXPECT_TRUE(below.counts.is_singleton);
  EXPECT_EQ(below.counts.trainable, 0);
  EXPECT_EQ(below.counts.trainable_yield, 0);
}

// Rows are members only if each brings one: else the minimum would count turns.
TEST(PromptGroup, SeveralRowsOfAMemberBreakTheContractOfAMinimum) {
  const auto broken = judge_group({2, 2, false, false}, members({2, 1}));
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Errc::kUnsupported);
  EXPECT_NE(broken.error().detail.find("2, 1"), std::string::npos);
  EXPECT_EQ(judge_group({2, 1, false, false}, members({2, 1})).value().rows, 3);
  // A group that is dropped anyway has no contract to break.
  EXPECT_FALSE(judge_group({3, 2, false, false}, members({2, -1, -1})).value().is_kept);
}

TEST(PromptGroup, NormalizedRewardsNeedThemAll) {
  const GroupRule rule{2, 1, false, true};
  EXPECT_TRUE(judge_group(rule, members({1, 1})).value().is_kept);
  EXPECT_FALSE(judge_group(rule, members({1, -1})).value().is_kept);
  auto without = members({1, 1});
  without[1].has_last_reward = false;
  EXPECT_FALSE(judge_group(rule, without).value().is_kept);
  EXPECT_TRUE(judge_group({2, 1, false, false}, without).value().is_kept);
}

TEST(PromptGroup, RewardsWithinAGroup) {
  const auto two = normalized_rewards(std::vector<double>{1, 3});
  EXPECT_NEAR(two[0], -1, 1e-6);
  EXPECT_NEAR(two[1], 1, 1e-6);
  EXPECT_EQ(normalized_rewards(std::vector<double>{7}), std::vector<double>{0});
  EXPECT_EQ(normalized_rewards(std::vector<double>{2, 2}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(normalized_rewards({}).empty());
}

TEST(PromptGroup, MarksStandOnTheFirstRow) {
  const std::vector<std::int64_t> tokens = {2, 1, 3, 2, 1};
  const auto marks = mark_groups(tokens, std::vector<std::int64_t>{2, 3}).value();
  EXPECT_EQ(marks.starts, (std::vector<std::uint8_t>{1, 0, 1, 0, 0}));
  EXPECT_EQ(marks.loss_weights, (std::vector<float>{3, 0, 6, 0, 0}));
  EXPECT_FALSE(mark_groups(tokens, std::vector<std::int64_t>{2, 2}));
  EXPECT_FALSE(mark_groups(tokens, std::vector<std::int64_t>{2, 4}));
  EXPECT_FALSE(mark_groups(tokens, std::vector<std::int64_t>{5, 0}));
}

// Tokens of the answer that a filter drops do not make the prompt longer.
TEST(PromptLength, DoesNotGrowWithWhatIsFilteredOut) {
  const Rows rows = Rows::padded(1, 8);
  const std::vector<std::uint8_t> attention(8, 1);
  const std::vector<std::uint8_t> whole = {0, 0, 1, 1, 1, 1, 1, 0};
  const std::vector<std::uint8_t> filtered = {0, 0, 1, 0, 1, 0, 1, 0};
  EXPECT_EQ(prompt_lengths(rows, attention, whole), std::vector<std::int64_t>{3});
  EXPECT_EQ(prompt_lengths(rows, attention, filtered), std::vector<std::int64_t>{3});
  EXPECT_EQ(count(attention) - count(filtered), 5U);  // The difference that is told apart.
}

TEST(PromptLength, EmptyRows) {
  EXPECT_TRUE(prompt_lengths(Rows::padded(0, 3), {}, {}).empty());
  EXPECT_EQ(prompt_lengths(Rows::padded(2, 0), {}, {}), (std::vector<std::int64_t>{0, 0}));
}

}  // namespace
}  // namespace areal::algo
