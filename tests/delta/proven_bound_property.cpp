// The proven interval against steps in all operation orders, over bit patterns where rounding is hardest.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/rng.h"
#include "engine/delta/adamw_orders.h"
#include "engine/delta/change_mask.h"
#include "engine/delta/inversion.h"

namespace areal::delta {
namespace {

double draw_real(Rng& rng, double low, double high) {
  return low + (high - low) * static_cast<double>(rng.draw_below(1ULL << 40)) * 0x1p-40;
}

std::uint32_t draw_sign(Rng& rng) { return rng.draw_chance(1, 2) ? 0x80000000U : 0U; }

// A bit pattern and its neighbours up to three away.
float draw_near(Rng& rng, std::uint32_t bits) {
  const auto offset = static_cast<std::uint32_t>(rng.draw_below(7));
  const std::uint32_t magnitude = (bits & 0x7FFFFFFFU) + offset;
  return float_of_bits(draw_sign(rng) | (magnitude < 3 ? 0U : std::min(magnitude - 3, 0x7F7FFFFFU)));
}

float draw_weight(Rng& rng) {
  const auto any = static_cast<std::uint32_t>(rng.draw_u64() >> 32);
  const auto usual = static_cast<std::uint32_t>(0x38000000U + rng.draw_below(0x06000000));  // 3e-5 to 2.
  switch (rng.draw_below(8)) {
    case 0:
      return draw_near(rng, (any & 0x7FFF0000U) + 0x8000U);  // Half way between bf16 values.
    case 1:
      return draw_near(rng, any & 0x7F800000U);  // Powers of two.
    case 2:
      return draw_near(rng, any & 0x007FFFFFU);  // Denormal.
    case 3:
      return float_of_bits(draw_sign(rng));
    case 4:
      return draw_near(rng, any);
    case 5:
      return draw_near(rng, usual & 0xFF800000U);
    case 6:
      return float_of_bits(draw_sign(rng) | usual);
    default:
      return draw_near(rng, (usual & 0xFFFF0000U) + 0x8000U);
  }
}

float draw_second_moment(Rng& rng) {
  switch (rng.draw_below(8)) {
    case 0:
      return 0.0F;
    case 1:
      return float_of_bits(static_cast<std::uint32_t>(rng.draw_below(0x00800000)));
    case 2:
      return float_of_bits(static_cast<std::uint32_t>(rng.draw_below(0x7F800000)));
    default:
      return static_cast<float>(std::exp2(draw_real(rng, -60, 0)));
  }
}

struct Setting {
  AdamWSettings settings;
  std::uint64_t t = 1;
  bool keeps_zeros = false;
};

Setting draw_setting(Rng& rng) {
  constexpr std::array kRates{1e-6, 3e-6, 1e-5, 1e-3, 0.1, 0.0, 1e-11};
  constexpr std::array kDecays{0.0, 0.003, 0.01, 0.1, 0.6};
  constexpr std::array kEpsilons{1e-8, 1e-15, 1e-6, 0.0, 1.0};
  constexpr std::array kBetas{0.95, 0.999, 0.99999, 0.0};
  Setting made;
  made.settings.learning_rate = kRates[rng.draw_below(kRates.size())];
  made.settings.weight_decay = kDecays[rng.draw_below(kDecays.size())];
  made.settings.epsilon = kEpsilons[rng.draw_below(kEpsilons.size())];
  made.settings.beta2 = kBetas[rng.draw_below(kBetas.size())];
  const bool is_early = rng.draw_chance(1, 2);
  made.t = 1 + rng.draw_below(is_early ? 3 : 3000);
  made.keeps_zeros = rng.draw_chance(1, 2);
  return made;
}

float draw_any(Rng& rng, std::uint64_t below) {
  const auto bits = static_cast<std::uint32_t>(rng.draw_below(below));
  return draw_near(rng, bits);
}

// A first moment that moves the weight by a wished share of itself, or any.
float draw_first_moment(Rng& rng, const OrderScalars& by, float weight, float v) {
  switch (rng.draw_below(8)) {
    case 0:
      return float_of_bits(draw_sign(rng));
    case 1:
      return draw_any(rng, 1ULL << 32);
    case 2:
      return draw_any(rng, 0x00800000);
    default:
      break;
  }
  const double size = std::abs(double{weight}) * std::exp2(draw_real(rng, -30, 6));
  const double root = std::sqrt(double{v}) / double{by.root_bc2} + double{by.epsilon};
  const double m = by.step_size == 0.0F ? 1e-5 : size * root / double{by.step_size};
  return static_cast<float>(rng.draw_chance(1, 2) ? m : -m);
}

struct Counts {
  int outside = 0;    // Without an interval.
  int escaped = 0;    // True weights outside of their interval.
  int missed = 0;     // Changed, not marked.
  int unchanged = 0;  // Finite, neither changed nor marked.
};

ProvenScalars shrunk(ProvenScalars scalars, float by) {
  scalars.moved_error /= by;
  scalars.still_error /= by;
  scalars.update_error /= by;
  return scalars;
}

// Many elements of one setting in all orders.
Counts count(std::uint64_t seed, int elements, float shrink_by) {
  Rng rng(seed);
  const Setting drawn = draw_setting(rng);
  const OrderScalars by = order_scalars(drawn.settings, drawn.t);
  ProvenStep step = proven_step(drawn.settings, drawn.t);
  step.keeps_zeros = drawn.keeps_zeros;
  const ProvenScalars proven = shrunk(proven_scalars(step), shrink_by);
  Counts counts;
  for (int i = 0; i < elements; ++i) {
    float before = draw_weight(rng);
    const float v = draw_second_moment(rng);
    const float m = draw_first_moment(rng, by, before, v);
    const StepOrder order = kStepOrders[rng.draw_below(kStepOrders.size())];
    const Contraction contraction = kContractions[rng.draw_below(kContractions.size())];
    if (drawn.keeps_zeros && order == StepOrder::kTorchFused && before == 0.0F) before = 0.0F;
    const float after = step_function(order, contraction)(by, before, m, v);
    const ProvenInterval interval = proven_interval(proven, after, m, v);
    const std::uint16_t current = to_bf16(after);
    const bool is_marked = must_mark(interval, current);
    const bool is_inside = std::isfinite(interval.radius) && std::isfinite(interval.back) && std::isfinite(after);
    const double away = (double{before} - double{after}) - double{interval.back};  // Exact, or far from the radius.
    counts.outside += is_inside ? 0 : 1;
    counts.escaped += is_inside && std::abs(away) > double{interval.radius} ? 1 : 0;
    counts.missed += to_bf16(before) != current && !is_marked ? 1 : 0;
    counts.unchanged += is_marked ? 0 : 1;
  }
  return counts;
}

RC_GTEST_PROP(ProvenBound, HoldsTheTrueWeightInEveryOrder, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Counts counts = count(seed, 5000, 1.0F);
  RC_ASSERT(counts.escaped == 0);
  RC_ASSERT(counts.missed == 0);
}

// A weight that decays below the least normal number may be flushed: 0 does not tell how large it was.
TEST(ProvenBound, HoldsWeightsThatDecayedAndWereFlushed) {
  const ProvenScalars scalars = proven_scalars({.learning_rate = 0x1p-4, .weight_decay = 1.0, .epsilon = 1e-8});
  for (const float before : {0x1.0p-126F, 0x1.08p-126F, 0x1.11p-126F, -0x1.11p-126F}) {
    const ProvenInterval interval = proven_interval(scalars, std::copysign(0.0F, before), 0.0F, 1e-12F);
    EXPECT_EQ(interval.back, 0.0F);
    EXPECT_LE(std::fabs(before), interval.radius);
    EXPECT_TRUE(must_mark(interval, to_bf16(interval.weight)));
  }
}

// What the proof does not cover is marked, whatever else the element holds.
TEST(ProvenBound, MarksWhatIsNotFiniteAndSettingsOutside) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float usual[] = {0.02F, 1e-4F, 1e-8F};
  const auto is_marked = [](const ProvenScalars& scalars, const float(&state)[3]) {
    return must_mark(proven_interval(scalars, state[0], state[1], state[2]), to_bf16(state[0]));
  };
  const ProvenStep inside{.learning_rate = 1e-6, .weight_decay = 0.01, .epsilon = 1e-8};
  EXPECT_FALSE(is_marked(proven_scalars(inside), usual)) << "or this shows nothing";
  for (const float bad : {kInf, -kInf, std::nanf(""), -std::nanf("")}) {
    for (std::size_t place = 0; place < 3; ++place) {
      float state[3] = {usual[0], usual[1], usual[2]};
      state[place] = bad;
      EXPECT_TRUE(is_marked(proven_scalars(inside), state)) << bad << " at " << place;
    }
  }
  for (const double bad : {-1.0, double{kInf}, std::nan("")}) {
    ProvenStep step = inside;
    step.learning_rate = bad;
    EXPECT_TRUE(is_marked(proven_scalars(step), usual)) << "learning rate " << bad;
    step = inside;
    step.epsilon = bad;
    EXPECT_TRUE(is_marked(proven_scalars(step), usual)) << "epsilon " << bad;
  }
}

// The same elements, with a bound that is a quarter of the proven one.
TEST(ProvenBound, AQuarterOfItWouldMissChanges) {
  Counts sum;
  Counts whole;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Counts counts = count(seed, 5000, 4.0F);
    sum.escaped += counts.escaped;
    sum.missed += counts.missed;
    const Counts proven = count(seed, 5000, 1.0F);
    whole.escaped += proven.escaped;
    whole.missed += proven.missed;
    whole.outside += proven.outside;
    whole.unchanged += proven.unchanged;
  }
  EXPECT_GT(sum.escaped, 0);
  EXPECT_GT(sum.missed, 0);
  EXPECT_EQ(whole.escaped, 0);
  EXPECT_EQ(whole.missed, 0);
  // Marking everything would pass as well.
  EXPECT_GT(whole.unchanged, 50'000);
  EXPECT_GT(whole.outside, 0);
}

}  // namespace
}  // namespace areal::delta
