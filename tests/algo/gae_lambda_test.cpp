// λ by sequence, and what counts as a time step.
#include "engine/algo/gae_lambda.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/algo/time_steps.h"
#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

TEST(GaeLambda, StaysWithinZeroAndOne) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::int64_t> lengths = {0, 1, 2, draw_between(rng, 3, 100'000)};
    const double share = static_cast<double>(draw_between(rng, 1, 1000)) / 1000;
    for (const LambdaKind kind : {LambdaKind::kLengthAdaptive, LambdaKind::kRelativePosition}) {
      const auto lambda = lambdas({kind, share}, lengths).value();
      for (const float value : lambda) {
        EXPECT_GE(value, 0);
        EXPECT_LE(value, 1);
      }
      EXPECT_EQ(lambda[0], 0);
    }
  }
}

// The first step of a sequence keeps exactly the share q of a reward at its end, however long it is.
TEST(GaeLambda, RelativePositionKeepsItsShare) {
  for (const std::int64_t length : {2, 10, 100, 5000}) {
    const std::vector<std::int64_t> lengths = {length};
    const double lambda = lambdas({LambdaKind::kRelativePosition, 0.3}, lengths).value()[0];
    EXPECT_NEAR(std::pow(lambda, static_cast<double>(length - 1)), 0.3, 3e-7 * static_cast<double>(length));
  }
}

TEST(GaeLambda, RefusesWhatIsNoShare) {
  const std::vector<std::int64_t> lengths = {3};
  for (const double q : {-0.1, 0.0, 1.1, std::nan(""), HUGE_VAL}) {
    EXPECT_FALSE(lambdas({LambdaKind::kRelativePosition, q}, lengths)) << q;
  }
  EXPECT_FALSE(lambdas({LambdaKind::kLengthAdaptive, 0}, lengths));
  EXPECT_FALSE(lambda_rule_from("true", 1));
  EXPECT_FALSE(lambda_rule_from("", 1));
  EXPECT_FALSE(lambda_rule_from("0.9x", 1));
  EXPECT_EQ(lambda_rule_from("0.95", 1).value().value, 0.95);
}

TEST(GaeLambda, FindsWhatIsNotFinite) {
  EXPECT_TRUE(check_finite(std::vector<float>{0, 1}));
  EXPECT_FALSE(check_finite(std::vector<float>{0, kNan}));
  EXPECT_FALSE(check_finite(std::vector<float>{kInfinity}));
}

TEST(TimeSteps, CountsTrainedTokensAndTheirTurns) {
  const Rows rows = Rows::padded(2, 5);
  const std::vector<std::uint8_t> trained = {1, 1, 0, 1, 0, 0, 0, 0, 0, 0};
  const std::vector<std::int32_t> turns = {0, 0, 7, 2, -1, 0, 0, 1, 1, 1};
  const auto steps = time_steps(TimeStep::kTurn, rows, trained, &turns).value();
  EXPECT_EQ(steps.tokens, (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(steps.turns, (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(steps.lengths(), steps.turns);
  EXPECT_FALSE(time_steps(TimeStep::kTurn, rows, trained, nullptr));
  EXPECT_EQ(time_steps(TimeStep::kToken, rows, trained, nullptr).value().turns, (std::vector<std::int64_t>{0, 0}));
  EXPECT_FALSE(time_step_from("episode"));
}

}  // namespace
}  // namespace areal::algo
