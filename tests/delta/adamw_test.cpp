// One AdamW step: its scalars, a step worked by hand, and what settings are refused.
#include "engine/delta/adamw.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace areal::delta {
namespace {

// Beta 1/2 and 3/4 and a rate of 1/8 make every number of the first step exact.
AdamWSettings exact_settings() {
  return {.learning_rate = 0.125, .weight_decay = 2.0, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1.0};
}

TEST(AdamW, FirstStepByHand) {
  const AdamWScalars scalars = adamw_scalars(exact_settings(), 1);
  EXPECT_EQ(scalars.step_size, 0.25F);
  EXPECT_EQ(scalars.root_bc2, 0.5F);
  EXPECT_EQ(scalars.decay, 0.75F);
  // m = 3/2, v = 9/4, sqrt(v) / sqrt(bc2) = 3, denominator 4: p = 8 * 3/4 - 1/4 * 3/2 / 4.
  const AdamWElement after = adamw_element(scalars, {8.0F, 0.0F, 0.0F}, 3.0F);
  EXPECT_EQ(after.exp_avg, 1.5F);
  EXPECT_EQ(after.exp_avg_sq, 2.25F);
  EXPECT_EQ(after.weight, 6.0F - 0.09375F);
}

// A trainer that is restored must go on with the very same scalars.
TEST(AdamW, KeptPowersEqualThoseMadeAnew) {
  const AdamWSettings settings{.weight_decay = 0.003};
  AdamWPowers powers;
  for (std::uint64_t t = 1; t <= 50; ++t) {
    const AdamWScalars kept = powers.next(settings);
    const AdamWScalars anew = adamw_scalars(settings, t);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(kept.step_size), std::bit_cast<std::uint32_t>(anew.step_size)) << t;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(kept.root_bc2), std::bit_cast<std::uint32_t>(anew.root_bc2)) << t;
  }
  EXPECT_EQ(AdamWPowers(settings, 50).steps(), powers.steps());
}

// With scalars in fp32 the bias correction of a late step would be another one.
TEST(AdamW, ScalarsAreRoundedOnce) {
  double power = 1.0;
  for (int i = 0; i < 1000; ++i) power *= 0.999;
  EXPECT_EQ(adamw_scalars({}, 1000).root_bc2, static_cast<float>(std::sqrt(1.0 - power)));
  EXPECT_EQ(adamw_scalars({.learning_rate = 3e-6, .weight_decay = 0.003}, 1).decay,
            static_cast<float>(1.0 - 3e-6 * 0.003));
}

TEST(AdamW, SpansMoveAsElementsDo) {
  const AdamWScalars scalars = adamw_scalars({.weight_decay = 0.01}, 3);
  std::vector<float> weights{1.0F, -0.002F, 0.0F};
  std::vector<float> exp_avg{0.01F, 0.0F, -0.3F};
  std::vector<float> exp_avg_sq{0.0004F, 0.0F, 0.01F};
  const std::vector<float> gradients{0.5F, 0.0F, -1.0F};
  std::vector<AdamWElement> wanted;
  for (std::size_t i = 0; i < 3; ++i) {
    wanted.push_back(adamw_element(scalars, {weights[i], exp_avg[i], exp_avg_sq[i]}, gradients[i]));
  }
  adamw_step(scalars, {weights, exp_avg, exp_avg_sq, gradients});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(weights[i], wanted[i].weight);
    EXPECT_EQ(exp_avg[i], wanted[i].exp_avg);
    EXPECT_EQ(exp_avg_sq[i], wanted[i].exp_avg_sq);
  }
  EXPECT_NE(weights[0], 1.0F);
}

TEST(AdamW, ReadsDecimalsAndRefusesWhatIsNone) {
  const AdamWText good{"3e-6", "0.003", "0.9", "0.999", "1e-8"};
  const Result<AdamWSettings> settings = parse_adamw(good);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->learning_rate, 3e-6);
  EXPECT_EQ(settings->epsilon, 1e-8);
  for (const std::string_view bad : {"", "x", "0.5 ", "-0.1", "nan", "inf", "1.0", "0,5"}) {
    AdamWText text = good;
    text.beta1 = bad;
    EXPECT_FALSE(parse_adamw(text)) << bad;
  }
  EXPECT_FALSE(parse_adamw({"1", "1", "0.9", "0.999", "1e-8"}));
}

}  // namespace
}  // namespace areal::delta
