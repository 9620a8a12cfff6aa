// What a rollout records: rows, labels of versions, rewards of interactions.
#include <gtest/gtest.h>

#include <limits>

#include "engine/algo/generation_call.h"
#include "engine/algo/interaction_rewards.h"
#include "engine/algo/trajectory_row.h"
#include "engine/algo/version_runs.h"

namespace areal::algo {
namespace {

using Ids = std::vector<std::int32_t>;
using Labels = std::vector<std::int64_t>;
using Kept = std::vector<std::uint8_t>;

// What is trained carries a version and a turn; what is not carries neither, and no log-probability.
void expect_aligned(const TrajectoryRow& row) {
  ASSERT_EQ(row.logprobs.size(), row.input_ids.size());
  for (std::size_t at = 0; at < row.input_ids.size(); ++at) {
    const bool trained = row.loss_mask[at] != 0;
    EXPECT_EQ(trained, row.versions[at] >= 0);
    EXPECT_EQ(trained, row.turn_ids[at] >= 0);
    if (!trained) {
      EXPECT_EQ(row.logprobs[at], 0.0F);
    }
  }
}

TEST(TrajectoryRow, AnEmptyPromptIsRefused) {
  EXPECT_FALSE(trajectory_row({{}, {1}, {-1.0F}, {0}}));
  EXPECT_FALSE(trajectory_row({{1}, {1, 2}, {-1.0F}, {0, 0}}));
  EXPECT_FALSE(trajectory_row({{1}, {1}, {-1.0F}, {}}));
  EXPECT_TRUE(trajectory_row({{1}, {}, {}, {}}));
}

TEST(ChildRow, InheritsWhatItsParentTrained) {
  const TrajectoryRow parent = trajectory_row({{1, 2}, {7, 8}, {-0.5F, -0.25F}, {4, 5}}).value();
  const ChildRow child = child_row(parent, {{1, 2, 7, 8, 3}, {9}, {-2.0F}, {6}}).value();
  EXPECT_TRUE(child.parent_used);
  EXPECT_EQ(child.row.versions, (Labels{-1, -1, 4, 5, -1, 6}));
  EXPECT_EQ(child.row.turn_ids, (Ids{-1, -1, 0, 0, -1, 1}));
  EXPECT_EQ(child.row.logprobs, (std::vector<float>{0, 0, -0.5F, -0.25F, 0, -2.0F}));
  expect_aligned(child.row);
  const ChildRow third = child_row(child.row, {{1, 2, 7, 8, 3, 9, 5}, {6}, {-1.0F}, {7}}).value();
  EXPECT_EQ(third.row.turn_ids.back(), 2);
  expect_aligned(third.row);
}

TEST(ChildRow, AParentThatIsNotShorterDoesNotCount) {
  const TrajectoryRow parent = trajectory_row({{1, 2}, {7, 8}, {-0.5F, -0.25F}, {4, 5}}).value();
  const ChildRow child = child_row(parent, {{1, 2, 7, 8}, {9}, {-2.0F}, {6}}).value();
  EXPECT_FALSE(child.parent_used);
  EXPECT_EQ(child.row.loss_mask, (Kept{0, 0, 0, 0, 1}));
  EXPECT_EQ(child.row.turn_ids.back(), 0);
  EXPECT_FALSE(child_row(parent, {{1, 2, 7, 9, 3}, {9}, {-2.0F}, {6}})) << "another beginning";
}

// With 0 as padding, tokens that do not exist would seem to be of version 0 and of the first turn.
TEST(TrajectoryRow, PaddingCarriesNeitherAVersionNorATurn) {
  TrajectoryRow row = trajectory_row({{1}, {7}, {-0.5F}, {4}}).value();
  pad_row(row, 4);
  expect_aligned(row);
  EXPECT_EQ(row.versions, (Labels{-1, 4, -1, -1}));
  EXPECT_EQ(row.turn_ids, (Ids{-1, 0, -1, -1}));
  EXPECT_EQ(row.attention_mask, (Kept{1, 1, 0, 0}));
}

TEST(ChildRow, AParentThatGeneratedNothingLeavesTurnZero) {
  const TrajectoryRow parent = trajectory_row({{1, 2}, {}, {}, {}}).value();
  EXPECT_EQ(child_row(parent, {{1, 2, 3}, {9}, {-2.0F}, {6}}).value().row.turn_ids, (Ids{-1, -1, -1, 0}));
}

// The label is the version read before the request was sent; read after the answer it could be newer than the weights.
TEST(GenerationCall, LabelsAreThoseOfTheSending) {
  GenerationCall call = GenerationCall::create(Ids{1}, 100, 16).value();
  std::int64_t engine_version = 10;
  EXPECT_EQ(call.send(engine_version).version, 10);
  engine_version = 11;
  ASSERT_TRUE(call.receive({{7, 8, 9}, {-1.0F, -1.0F, -1.0F}, StopReason::kStop}));
  EXPECT_EQ(call.versions(), std::vector<std::int64_t>(3, 10));
  EXPECT_NE(call.versions(), std::vector<std::int64_t>(3, engine_version)) << "the wrong form is not told apart";
  EXPECT_EQ(call.input_tokens(), Ids{1});
}

TEST(GenerationCall, RoomIsTheSmallerOfBothLimits) {
  EXPECT_EQ(GenerationCall::create(Ids(3, 1), 10, 20).value().send(0).max_new_tokens, 7);
  EXPECT_EQ(GenerationCall::create(Ids(3, 1), 10, 5).value().send(0).max_new_tokens, 5);
  EXPECT_FALSE(GenerationCall::create(Ids(10, 1), 10, 5));
  EXPECT_FALSE(GenerationCall::create(Ids(1, 1), 10, 0));
  EXPECT_FALSE(GenerationCall::create(Ids(1, 1), 10, 5, 2));
}

TEST(GenerationCall, AnAnswerThatDoesNotFitLeavesTheRequestUnderWay) {
  GenerationCall call = GenerationCall::create(Ids{1}, 100, 2).value();
  call.send(0);
  EXPECT_FALSE(call.receive({{1, 2, 3}, {-1.0F, -1.0F, -1.0F}, StopReason::kLength}));
  EXPECT_FALSE(call.receive({{1}, {std::numeric_limits<float>::quiet_NaN()}, StopReason::kStop}));
  EXPECT_FALSE(call.finished());
  EXPECT_TRUE(call.tokens().empty());
  ASSERT_TRUE(call.receive({{1}, {-1.0F}, StopReason::kToolCalls}));
  EXPECT_TRUE(call.finished());
  EXPECT_EQ(call.stop_reason(), StopReason::kToolCalls);
}

TEST(VersionRuns, RowsAreCutWhereGenerationBeginsAndEnds) {
  using Part = RowPart;
  EXPECT_EQ(split_row(Kept{0, 0, 0, 1, 1, 1}).prompt_end, 3U);
  EXPECT_TRUE(split_row(Kept{0, 0, 0, 1, 1, 1}).segments.empty());
  EXPECT_EQ(
      split_row(Kept{0, 0, 1, 1, 0, 0, 1, 1}).segments,
      (std::vector<RowSegment>{{Part::kPrompt, 2}, {Part::kGenerated, 2}, {Part::kContext, 2}, {Part::kGenerated, 2}}));
  EXPECT_EQ(split_row(Kept{0, 0, 0}).prompt_end, 3U);
  EXPECT_EQ(split_row(Kept{1, 1}).prompt_end, 0U);
  EXPECT_TRUE(split_row(Kept{1}).segments.empty());
  EXPECT_EQ(split_row(Kept{0, 1, 0, 1, 0, 1}).segments.size(), 6U);
  EXPECT_EQ(split_row({}).prompt_end, 0U);
}

Interaction made(const char* id, const char* messages, const char* parent, double reward) {
  return {.id = id, .messages = messages, .parent = parent, .created = 0, .reward = reward};
}

TEST(InteractionRewards, AnAttemptThatWasGivenUpTakesItsRewardAlong) {
  InteractionRewards rewards;
  ASSERT_TRUE(rewards.add(made("orphan", "m1", "", 5)));
  ASSERT_TRUE(rewards.add(made("retry", "m1", "", 1)));
  ASSERT_TRUE(rewards.add(made("next", "m2", "retry", 2)));
  EXPECT_EQ(rewards.total(), 8.0);
  EXPECT_EQ(rewards.drop_retry_orphans().value(), std::vector<std::string>{"orphan"});
  EXPECT_EQ(rewards.total(), 3.0);
  ASSERT_TRUE(rewards.discount(1.0));
  EXPECT_EQ(rewards.interactions()[0].reward, 3.0);
  EXPECT_EQ(rewards.interactions()[1].reward, 2.0);
  EXPECT_FALSE(rewards.discount(1.0)) << "only once";
  EXPECT_FALSE(rewards.drop_retry_orphans()) << "only before";
}

TEST(InteractionRewards, TotalsFollowWhatIsSet) {
  InteractionRewards rewards;
  ASSERT_TRUE(rewards.add({.id = "a", .messages = "m", .parent = {}, .reward = {}}));
  EXPECT_TRUE(rewards.set_reward("a", 2));
  EXPECT_TRUE(rewards.set_reward("a", 5));
  EXPECT_EQ(rewards.total(), 5.0);
  EXPECT_FALSE(rewards.set_reward("b", 1));
  EXPECT_FALSE(rewards.add(made("a", "m", "", 0)));
  EXPECT_FALSE(rewards.add(made("c", "m", "nobody", 0)));
}

TEST(InteractionRewards, LeavesAreNoOnesParents) {
  InteractionRewards rewards;
  for (const auto& [id, parent] :
       std::vector<std::pair<const char*, const char*>>{{"i1", ""}, {"i2", "i1"}, {"i3", "i2"}, {"i4", "i1"}}) {
    ASSERT_TRUE(rewards.add(made(id, id, parent, 0)));
  }
  EXPECT_EQ(rewards.leaves(), (std::vector<std::string>{"i3", "i4"}));
  EXPECT_TRUE(InteractionRewards().leaves().empty());
}

}  // namespace
}  // namespace areal::algo
