// One step of decoupled AdamW, bit for bit the same on every machine.
//
// In the order of torch's AdamW on CPUs, which the vectors in tests/data/vectors/adamw_steps.json were made with:
//   m = b1 m + (1 - b1) g        with one rounding of (1 - b1) g + (b1 m)
//   v = b2 v + (1 - b2) g g
//   p = (1 - lr wd) p - (lr / bc1) m / (sqrt(v) / sqrt(bc2) + eps),  bc1 = 1 - b1^t,  bc2 = 1 - b2^t
// Scalars are float64 and powers repeated products; lr / bc1, sqrt(bc2), eps and 1 - lr wd are then rounded once to
// fp32, and elements are fp32. Only + - * / sqrt and fma, never contracted. Given the vectors' moments, all 960 weights
// come out bit for bit; with sqrt(v / bc2), the order in which a step is inverted, 15 would differ, one by 4
// neighbours. Second moments are within 2 neighbours of the vectors. Pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/result.h"

namespace areal::delta {

struct InversionScalars;
struct ProvenStep;

struct AdamWSettings {
  double learning_rate = 3e-6;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// The same as decimals, as scenario and experiment files spell them.
struct AdamWText {
  std::string_view learning_rate;
  std::string_view weight_decay;
  std::string_view beta1;
  std::string_view beta2;
  std::string_view epsilon;
};

// Refuses what is no decimal, negative or not finite values, betas of 1 and more, and lr * wd of 1 and more.
Result<AdamWSettings> parse_adamw(const AdamWText& text);

// The scalars of step `t`, ready for elements.
struct AdamWScalars {
  float beta1 = 0;
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float step_size = 0;  // lr / bc1.
  float root_bc2 = 0;   // sqrt(bc2).
  float epsilon = 0;
  float decay = 0;  // 1 - lr * wd.
};

// REQUIRES: t > 0. Costs 2 t multiplications; AdamWPowers keeps them.
AdamWScalars adamw_scalars(const AdamWSettings& settings, std::uint64_t t);

// beta^t by repeated multiplication, kept between steps: equal to adamw_scalars at every t.
class AdamWPowers {
 public:
  AdamWPowers() = default;
  // As after so many calls of next().
  AdamWPowers(const AdamWSettings& settings, std::uint64_t steps) {
    while (steps_ < steps) next(settings);
  }

  // Moves on by one step and returns its scalars.
  AdamWScalars next(const AdamWSettings& settings);
  // What inverts the last step that next() gave; equal to inversion_scalars() at every t. REQUIRES: steps() > 0.
  [[nodiscard]] InversionScalars inversion(const AdamWSettings& settings) const;
  // The same for proven_bound.h.
  [[nodiscard]] ProvenStep proven_step(const AdamWSettings& settings) const;
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  std::uint64_t steps_ = 0;
  double beta1_power_ = 1.0;
  double beta2_power_ = 1.0;
};

struct AdamWElement {
  float weight = 0;
  float exp_avg = 0;
  float exp_avg_sq = 0;
};

struct AdamWSpans {
  std::span<float> weights;
  std::span<float> exp_avg;
  std::span<float> exp_avg_sq;
  std::span<const float> gradients;
};

AdamWElement adamw_element(const AdamWScalars& scalars, const AdamWElement& before, float gradient);

// In place. REQUIRES: all spans are equally long.
void adamw_step(const AdamWScalars& scalars, const AdamWSpans& spans);

}  // namespace areal::delta
