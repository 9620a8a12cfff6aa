// The weight before an AdamW step, from what the optimizer holds after it.
//
//   u = (lr / bc1) m / (sqrt(v / bc2) + eps),   theta_prev = (theta + u) / (1 - lr wd)      (spec/transfer.md 1.4)
//
// theta is the fp32 main weight after the step, m and v its moments, bc1 = 1 - b1^t and bc2 = 1 - b2^t. Scalars are
// float64 and rounded once to fp32, elements are fp32 in exactly this order, which is not the order of the step itself
// (adamw.h): the result is near the true previous weight, seldom equal to it. Whoever compares roundings needs a margin
// (change_mask.h). lr is the rate that the step consumed, never the schedule's present one. Pure functions.
#pragma once
#include <cmath>
#include <cstdint>

#include "engine/delta/adamw.h"
#include "engine/delta/bf16.h"
#include "engine/delta/proven_bound.h"

namespace areal::delta {

struct InversionScalars {
  float step_size = 0;  // lr / bc1.
  float bc2 = 0;
  float epsilon = 0;
  float decay = 0;  // 1 - lr * wd. 0 makes every weight infinite; parse_adamw() refuses such settings.
};

// Of step `t`, with the settings that it used. Without bias correction bc1 = bc2 = 1.
// REQUIRES: t > 0. Costs 2 t multiplications; AdamWPowers::inversion() has kept them.
InversionScalars inversion_scalars(const AdamWSettings& settings, std::uint64_t t, bool bias_correction = true);

// The same for proven_bound.h, which takes its scalars from float64.
ProvenStep proven_step(const AdamWSettings& settings, std::uint64_t t, bool bias_correction = true);

// In line: it runs once for every weight of a model.
inline float invert_adamw(const InversionScalars& scalars, float weight, float exp_avg, float exp_avg_sq) {
  const float denominator = std::sqrt(exp_avg_sq / scalars.bc2) + scalars.epsilon;
  const float update = (scalars.step_size * exp_avg) / denominator;
  return (weight + update) / scalars.decay;
}

// The same on devices that divide by a scalar as a product with its fp32 reciprocal; at most a few neighbours away.
inline float invert_adamw_by_reciprocals(const InversionScalars& scalars, float weight, float exp_avg,
                                         float exp_avg_sq) {
  const float denominator = std::sqrt(exp_avg_sq * (1.0F / scalars.bc2)) + scalars.epsilon;
  const float update = (scalars.step_size * exp_avg) / denominator;
  return (weight + update) * (1.0F / scalars.decay);
}

// What the owner of an element adds to the sum over its group: ranks that do not own it add 0 (spec/transfer.md 1.6).
constexpr float correction_of(float previous, std::uint16_t visible) { return previous - from_bf16(visible); }

// The previous weight that a rank reads from the summed correction; may differ from the owner's by one rounding.
constexpr float reconstruct(std::uint16_t visible, float correction) { return from_bf16(visible) + correction; }

}  // namespace areal::delta
