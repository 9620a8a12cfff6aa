// The rules around a rollout's batches.
#include "engine/algo/rollout_rules.h"

#include <gtest/gtest.h>

#include <limits>

namespace areal::algo {
namespace {

TEST(SubmitBudget, IsBoundedByBothQueues) {
  EXPECT_EQ(submit_budget({8, 0, 64, 0, 4}).value().submits, 4);
  EXPECT_EQ(submit_budget({8, 6, 64, 0, 4}).value().submits, 2);
  const auto over = submit_budget({8, 11, 64, 0, 4}).value();
  EXPECT_EQ(over.room, -3);
  EXPECT_EQ(over.submits, 0);
  EXPECT_FALSE(submit_budget({8, 0, 3, 0, 4}));
}

// Such a setting would wait for ever: it must be found before anything starts.
TEST(BatchNeeds, ABatchThatCanNeverFillIsRefused) {
  EXPECT_FALSE(check_batch_can_fill({1, 8, 0}));
  EXPECT_FALSE(check_batch_can_fill({0, 2, 0}));
  EXPECT_TRUE(check_batch_can_fill({1, 8, 7}));
  EXPECT_TRUE(check_batch_can_fill({8, 8, 0}));
  // A product beyond 64 bits is more than any batch.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(check_batch_can_fill({1, 8, kMost}));
  EXPECT_TRUE(check_batch_can_fill({kMost, 8, 3}));
  EXPECT_FALSE(check_batch_can_fill({kMost, 8, -3}));
}

TEST(ResultChoice, TakesTheFirstAndLeavesTheOthersInOrder) {
  const std::vector<TaskResult> results = {{2, 10}, {0, 20}, {1, 30}, {7, 10}};
  const auto tasks = [](const std::vector<TaskResult>& of) {
    std::vector<std::int64_t> numbers;
    for (const auto& result : of) numbers.push_back(result.task);
    return numbers;
  };
  EXPECT_EQ(tasks(choose_results(results, 2, true).taken), (std::vector<std::int64_t>{0, 1}));
  const auto by_time = choose_results(results, 2, false);
  EXPECT_EQ(tasks(by_time.taken), (std::vector<std::int64_t>{2, 7}));
  EXPECT_EQ(tasks(by_time.left), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(choose_results(results, 9, true).taken.size(), 4U);
  EXPECT_TRUE(choose_results({}, 2, true).taken.empty());
}

Instant at(std::int64_t seconds) { return Instant{} + 1_s * seconds; }

TEST(CollectionGuard, GivesUpOnlyAfterManyAndLongEmptyRounds) {
  using State = CollectionGuard::State;
  CollectionGuard fast(CollectionGuard::Limits{1, 8, 1800_s, false});
  for (int round = 0; round < 20; ++round) EXPECT_EQ(fast.round(at(0), 0), State::kCollecting);
  EXPECT_EQ(fast.round(at(1), 1), State::kEnough);

  CollectionGuard slow(CollectionGuard::Limits{1, 8, 1800_s, false});
  EXPECT_EQ(slow.round(at(0), 0), State::kCollecting);
  for (int round = 2; round < 8; ++round) EXPECT_EQ(slow.round(at(2000), 0), State::kCollecting);
  EXPECT_EQ(slow.round(at(2000), 0), State::kStalled);

  CollectionGuard progress(CollectionGuard::Limits{3, 2, 0_s, false});
  EXPECT_EQ(progress.round(at(0), 0), State::kCollecting);
  EXPECT_EQ(progress.round(at(1), 1), State::kCollecting);
  EXPECT_EQ(progress.round(at(2), 0), State::kCollecting);
  EXPECT_EQ(progress.round(at(3), 0), State::kStalled);

  CollectionGuard fixed(CollectionGuard::Limits{2, 8, 1800_s, true});
  EXPECT_EQ(fixed.round(at(0), 1), State::kTooFew);
}

}  // namespace
}  // namespace areal::algo
