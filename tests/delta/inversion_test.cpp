// Inverting AdamW steps and the change masks made from them: what a delta may never leave out.
#include "engine/delta/inversion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/rng.h"
#include "engine/delta/change_mask.h"
#include "engine/delta/fingerprint.h"

namespace areal::delta {
namespace {

// Roughly normal with variance 1: the sum of 12 uniform values, less its mean.
float draw_normal(Rng& rng) {
  constexpr std::uint64_t kSteps = 1 << 20;
  std::int64_t sum = 0;
  for (int i = 0; i < 12; ++i) sum += static_cast<std::int64_t>(rng.draw_below(kSteps));
  return static_cast<float>(static_cast<double>(sum) / kSteps - 6.0);
}

struct Steps {
  std::vector<float> before;  // The last step.
  std::vector<float> after;
  std::vector<float> inverted;
};

struct Walk {
  AdamWSettings settings{};
  std::uint64_t steps = 1;
  std::size_t elements = 64;
  float spread = 1.0F;  // Of the first weights.
  std::uint64_t seed = 0;
};

// Makes steps with random gradients and inverts the last.
Steps walk(const Walk& plan) {
  Rng rng(plan.seed);
  Steps result;
  AdamWPowers powers;
  std::vector<AdamWElement> elements(plan.elements);
  for (AdamWElement& element : elements) element.weight = plan.spread * draw_normal(rng);
  for (std::uint64_t step = 0; step < plan.steps; ++step) {
    const AdamWScalars scalars = powers.next(plan.settings);
    result.before.clear();
    for (AdamWElement& element : elements) {
      result.before.push_back(element.weight);
      element = adamw_element(scalars, element, draw_normal(rng));
    }
  }
  const InversionScalars scalars = powers.inversion(plan.settings);
  for (const AdamWElement& element : elements) {
    result.after.push_back(element.weight);
    result.inverted.push_back(invert_adamw(scalars, element.weight, element.exp_avg, element.exp_avg_sq));
  }
  return result;
}

double worst_error(const Steps& steps) {
  double worst = 0;
  for (std::size_t i = 0; i < steps.before.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(steps.before[i]) - steps.inverted[i]));
  }
  return worst;
}

TEST(Inversion, FirstStepByHand) {
  // The step of AdamW.FirstStepByHand, backward. In this order the root is sqrt(2.25 / 0.25) = 3: exact again.
  const AdamWSettings settings{
      .learning_rate = 0.125, .weight_decay = 2.0, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1.0};
  const InversionScalars scalars = inversion_scalars(settings, 1);
  EXPECT_EQ(scalars.step_size, 0.25F);
  EXPECT_EQ(scalars.bc2, 0.25F);
  EXPECT_EQ(scalars.decay, 0.75F);
  EXPECT_EQ(invert_adamw(scalars, 5.90625F, 1.5F, 2.25F), 8.0F);
}

TEST(Inversion, RoundTripStaysNear) {
  const AdamWSettings decayed{.learning_rate = 1e-3, .weight_decay = 0.01};
  EXPECT_LT(worst_error(walk({.settings = decayed, .elements = 512})), 1e-4);
  for (const double decay : {0.01, 0.0}) {
    const AdamWSettings slow{.learning_rate = 3e-6, .weight_decay = decay};
    // The step itself moves weights by 3e-6.
    EXPECT_LT(worst_error(walk({.settings = slow})), 1e-6) << decay;
  }
  const AdamWSettings late{.learning_rate = 1e-3, .weight_decay = 0.02};
  const Steps fifth = walk({.settings = late, .steps = 5});
  EXPECT_LT(worst_error(fifth), 1e-4);
  // The test could not fail if the steps were smaller than what is allowed.
  double moved = 0;
  for (std::size_t i = 0; i < 64; ++i) moved = std::max(moved, std::abs(double{fifth.after[i]} - fifth.before[i]));
  EXPECT_GT(moved, 5e-4);
}

TEST(Inversion, KeptPowersEqualThoseMadeAnew) {
  const AdamWSettings settings{.weight_decay = 0.003};
  AdamWPowers powers;
  for (std::uint64_t t = 1; t <= 50; ++t) {
    powers.next(settings);
    EXPECT_EQ(powers.inversion(settings).step_size, inversion_scalars(settings, t).step_size) << t;
    EXPECT_EQ(powers.inversion(settings).bc2, inversion_scalars(settings, t).bc2) << t;
  }
}

TEST(Inversion, WithoutBiasCorrectionNothingIsScaled) {
  const InversionScalars scalars = inversion_scalars({.learning_rate = 0.5}, 3, false);
  EXPECT_EQ(scalars.step_size, 0.5F);
  EXPECT_EQ(scalars.bc2, 1.0F);
  EXPECT_NE(inversion_scalars({.learning_rate = 0.5}, 3).bc2, 1.0F);
}

// The schedule moves on after a step. With its present rate, changes would be missed.
TEST(Inversion, NeedsTheRateThatTheStepUsed) {
  const AdamWSettings used{.learning_rate = 3e-6, .weight_decay = 0.1, .beta2 = 0.95};
  AdamWSettings moved_on = used;
  moved_on.learning_rate = 2e-6;
  const AdamWElement after = adamw_element(adamw_scalars(used, 1), {.weight = 1e-3F}, 1.0F);
  const auto error_with = [&](const AdamWSettings& settings) {
    const InversionScalars scalars = inversion_scalars(settings, 1);
    return std::abs(invert_adamw(scalars, after.weight, after.exp_avg, after.exp_avg_sq) - 1e-3F);
  };
  EXPECT_LT(error_with(used), 1e-9F);
  EXPECT_GT(error_with(moved_on), 9e-7F);
}

// Ten elements, of which two ranks own 6 and 4: each adds zeros for the other.
TEST(Inversion, SummedCorrectionsOfTwoOwnersReconstruct) {
  const Steps steps = walk({.settings = {.learning_rate = 1e-3, .weight_decay = 0.01}, .elements = 10});
  for (std::size_t i = 0; i < 10; ++i) {
    const std::uint16_t visible = to_bf16(steps.after[i]);
    const float correction = correction_of(steps.inverted[i], visible);
    const float sum = i < 6 ? correction + 0.0F : 0.0F + correction;
    EXPECT_NEAR(reconstruct(visible, sum), steps.inverted[i], 1e-6) << i;
  }
}

// An element whose published value changed and that is not sent leaves receivers wrong for ever.
TEST(ChangeMask, HoldsEveryTrueChange) {
  struct Case {
    double rate;
    double decay;
    std::uint64_t steps;
  };
  for (const Case& each : {Case{1e-6, 0.0, 1}, Case{3e-6, 0.1, 2}, Case{1e-5, 0.1, 11}, Case{1e-3, 0.0, 3}}) {
    const AdamWSettings settings{.learning_rate = each.rate, .weight_decay = each.decay};
    const Steps steps = walk({.settings = settings, .steps = each.steps, .elements = 20'000, .spread = 0.02F});
    std::size_t changed = 0;
    std::size_t sent = 0;
    for (std::size_t i = 0; i < steps.before.size(); ++i) {
      const std::uint16_t current = to_bf16(steps.after[i]);
      const bool is_sent = bf16_changed(steps.inverted[i], current, kReferenceMargin);
      const bool is_changed = to_bf16(steps.before[i]) != current;
      EXPECT_TRUE(is_sent || !is_changed) << each.rate << " element " << i;
      changed += is_changed ? 1 : 0;
      sent += is_sent ? 1 : 0;
    }
    EXPECT_GT(changed, 0U);
    // The margin is narrow: about one element in ten thousand is sent for nothing.
    EXPECT_LE(sent, changed + 100) << each.rate;
  }
}

// Weights that cross a rounding boundary by a neighbour or two are where inversion alone goes wrong.
TEST(ChangeMask, TheMarginCatchesWhatInversionMisses) {
  const AdamWSettings settings{.learning_rate = 1e-5, .weight_decay = 0.1};
  const AdamWScalars forward = adamw_scalars(settings, 1);
  const InversionScalars back = inversion_scalars(settings, 1);
  Rng rng(1);
  int missed_by_inversion = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t midpoint = bits_from_bf16(to_bf16(0.02F * draw_normal(rng))) + 0x8000U;
    const auto offset = static_cast<std::uint32_t>(rng.draw_below(7));
    const AdamWElement before{.weight = std::bit_cast<float>(midpoint - 3 + offset)};
    if (std::abs(before.weight) < 1e-3F) continue;
    const AdamWElement after = adamw_element(forward, before, draw_normal(rng));
    const float inverted = invert_adamw(back, after.weight, after.exp_avg, after.exp_avg_sq);
    const std::uint16_t current = to_bf16(after.weight);
    if (to_bf16(before.weight) == current) continue;
    missed_by_inversion += to_bf16(inverted) == current ? 1 : 0;
    EXPECT_TRUE(bf16_changed(inverted, current, kReferenceMargin)) << before.weight;
  }
  EXPECT_GT(missed_by_inversion, 0);
}

TEST(ChangeMask, EqualToRoundingTheWeightsThemselves) {
  const auto mask = [](float old, float now) { return bf16_changed(old, to_bf16(now), kReferenceMargin); };
  EXPECT_FALSE(mask(1.0F, 1.0F));
  EXPECT_TRUE(mask(1.25F, 1.5F));
  EXPECT_FALSE(mask(-2.0F, -2.0F));
  EXPECT_TRUE(mask(0.0F, -0.0F));
  // Changes that rounding hides.
  EXPECT_FALSE(mask(1.0F, 1.0F + 1e-5F));
  EXPECT_FALSE(mask(-2.0F, -2.0F - 1e-5F));
  EXPECT_FALSE(mask(1.001F, 1.0F));
  EXPECT_TRUE(mask(0.99609375F, 1.0F));
  // Zero gradient, but decay moves the weights visibly.
  const AdamWScalars scalars = adamw_scalars({.learning_rate = 0.1, .weight_decay = 0.1}, 1);
  const InversionScalars back = inversion_scalars({.learning_rate = 0.1, .weight_decay = 0.1}, 1);
  for (const float weight : {1.0F, -2.0F, 4.0F}) {
    const AdamWElement after = adamw_element(scalars, {.weight = weight}, 0.0F);
    EXPECT_TRUE(mask(invert_adamw(back, after.weight, after.exp_avg, after.exp_avg_sq), after.weight)) << weight;
  }
}

TEST(ChangeMask, TheBoundaryIsNearerBelowAPowerOfTwo) {
  constexpr std::uint16_t kOne = 0x3F80;
  EXPECT_TRUE(bf16_changed(0.998046875F, kOne, kReferenceMargin));
  EXPECT_EQ(to_bf16(0.998046875F), kOne);
  EXPECT_TRUE(bf16_changed(1.00390625F, kOne, kReferenceMargin));
  EXPECT_EQ(to_bf16(1.00390625F), kOne);
  EXPECT_FALSE(bf16_changed(1.0039F, kOne, kReferenceMargin));
  EXPECT_FALSE(bf16_changed(1.001F, kOne, kReferenceMargin));
  // The same distance is half a gap below 1, and a quarter of one above.
  EXPECT_FALSE(bf16_changed(1.001953125F, kOne, kReferenceMargin));
  constexpr std::uint16_t kMinusOne = 0xBF80;
  EXPECT_TRUE(bf16_changed(-0.998046875F, kMinusOne, kReferenceMargin));
  EXPECT_FALSE(bf16_changed(-1.0039F, kMinusOne, kReferenceMargin));
}

TEST(ChangeMask, NothingThatIsNotFiniteIsNearABoundary) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float margin : {kReferenceMargin, 0.5F}) {
    EXPECT_FALSE(near_rounding_boundary(kInf, 0x7F80, margin));
    EXPECT_FALSE(near_rounding_boundary(kNan, kCanonicalNan, margin));
    EXPECT_FALSE(near_rounding_boundary(kNan, 0x3F80, margin));
    EXPECT_FALSE(near_rounding_boundary(1.0F, 0xFF80, margin));
  }
  // Beyond the largest finite value there is no neighbour to be near to.
  EXPECT_FALSE(near_rounding_boundary(std::numeric_limits<float>::max(), 0x7F7F, kReferenceMargin));
  EXPECT_FALSE(bf16_changed(kNan, kCanonicalNan, kReferenceMargin));
}

TEST(ChangeMask, PayloadsInFp32CompareBits) {
  EXPECT_FALSE(f32_changed(1.0F, 0x3F800000));
  EXPECT_TRUE(f32_changed(1.0F, 0x3F800001));
  EXPECT_TRUE(f32_changed(0.0F, 0x80000000));
  EXPECT_FALSE(f32_changed(std::bit_cast<float>(0x7FC00001U), 0x7FC00001));
}

TEST(ChangeMask, IndicesAreNarrowAsLongAsTheyFit) {
  EXPECT_EQ(index_dtype(0), DType::kI32);
  EXPECT_EQ(index_dtype((1ULL << 31) - 1), DType::kI32);
  EXPECT_EQ(index_dtype(1ULL << 31), DType::kI64);
}

TEST(ChangeMask, RoutersAreSentWholeUnlessTurnedOff) {
  EXPECT_TRUE(is_forced_dense("model.layers.0.mlp.gate.weight"));
  EXPECT_FALSE(is_forced_dense("model.layers.0.mlp.gate_proj.weight"));
  EXPECT_FALSE(is_forced_dense("mlp.gate.weight"));
  EXPECT_FALSE(is_forced_dense("model.layers.0.mlp.gate.weight", ""));
  EXPECT_FALSE(is_forced_dense("model.layers.0.mlp.gate.weight", " , ,"));
  EXPECT_TRUE(is_forced_dense("lm_head.weight", " .norm.weight , lm_head.weight "));
}

// A single changed byte, wherever it is, is seen.
TEST(Fingerprint, SeesEveryByte) {
  std::vector<std::uint8_t> bytes(10'000, 7);
  const Fingerprint before = fingerprint_of(bytes, DType::kBf16);
  for (std::size_t i = 0; i < bytes.size(); i += 37) {
    bytes[i] = 8;
    EXPECT_NE(fingerprint_of(bytes, DType::kBf16), before) << i;
    bytes[i] = 7;
  }
  EXPECT_EQ(fingerprint_of(bytes, DType::kBf16), before);
  EXPECT_NE(fingerprint_of(bytes, DType::kF16), before);
  EXPECT_EQ(fingerprint_of({}, DType::kF32), (Fingerprint{.dtype = DType::kF32}));
}

}  // namespace
}  // namespace areal::delta
