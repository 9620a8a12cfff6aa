// An interval that surely holds the weight before an AdamW step, from what the optimizer holds after it.
//
// With p the fp32 main weight after the step, m and v its moments, e = 2^-24 and L = 1 / (1 - lr wd) - 1:
//
//   u = step m / (sqrt(v / bc2) + eps),   w = (1 + L) u + L p,   r = A |p| + B |u| + T,   [p + w - r, p + w + r]
//
// A is about e without weight decay and 2.5 e with it, B about 64 e. docs/delta.md proves that the interval holds the
// true previous weight whenever the step was one of torch's, fused or by reciprocals, contracted or not, and says what
// is outside: such elements get a radius of NaN, which marks them. Plain fp32 arithmetic on bit patterns, no
// library; device compilers may include it, and give the same bits. Pure functions.
#pragma once
#include <cmath>
#include <cstdint>

#include "engine/delta/bf16.h"
#include "engine/delta/host_device.h"
#include "engine/delta/proven_scalars.h"

namespace areal::delta {

// What the step used. bc1 = 1 - beta1^t and bc2 = 1 - beta2^t in float64; both 1 without bias correction.
struct ProvenStep {
  double learning_rate = 0;
  double weight_decay = 0;
  double epsilon = 0;
  double bc1 = 1;
  double bc2 = 1;
  std::uint64_t t = 1;
  // The step leaves a weight of +0 or -0 whose m is +0 as it is, and flushes no denormal weight. torch's fused step
  // makes +0 of -0. False marks all zeros that never had a gradient; true leaves those of +0 out.
  bool keeps_zeros = false;
};

// What lies within `radius` of weight + back; the sum is never taken, because it would have to be rounded.
struct ProvenInterval {
  float weight = 0;  // p.
  float back = 0;    // w.
  float radius = 0;  // r.
};

namespace proven {

// Correctly rounded and never contracted, also on devices.
AREAL_HOST_DEVICE inline float product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
AREAL_HOST_DEVICE inline float sum(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
AREAL_HOST_DEVICE inline float quotient(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
AREAL_HOST_DEVICE inline float root(float a) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(a);
#else
  return std::sqrt(a);
#endif
}
AREAL_HOST_DEVICE constexpr float magnitude(float a) { return float_of_bits(float_bits(a) & 0x7FFFFFFFU); }

// How far 1 - beta^t may be off, in units of 2^-24 of itself, where beta is kept in fp32 or its power is taken there.
inline double drift_of(double bc, std::uint64_t t) {
  const double power = 1.0 - bc;
  if (power < 0x1p-50 && t <= (1ULL << 27)) return 1.0;
  if (t > (1ULL << 20)) return HUGE_VAL;
  return (static_cast<double>(t) + 8.0) * power / bc;
}

// What the optimizer may have used; anything else marks every element. NaNs fit nothing.
inline bool is_covered(const ProvenStep& step, double shrink, double drift) {
  const double step_size = step.learning_rate / step.bc1;
  const bool scales = step.bc1 >= 0x1p-24 && step.bc1 <= 1.0 && step.bc2 >= 0x1p-24 && step.bc2 <= 1.0;
  const bool moves = step.learning_rate == 0.0 || (step_size >= 0x1p-40 && step_size <= 0x1p+10);
  const bool decays = step.weight_decay >= 0.0 && shrink >= 0.0 && shrink <= 0x1p-4;
  const bool bounded = step.epsilon == 0.0 || (step.epsilon >= 0x1p-126 && step.epsilon <= 0x1p+10);
  return scales && moves && decays && bounded && drift <= 0x1p+20;
}

}  // namespace proven

// Host only. Never fails: with settings outside docs/delta.md's preconditions every element is marked.
inline ProvenScalars proven_scalars(const ProvenStep& step) {
  constexpr double kUnit = 0x1p-24;
  constexpr double kSlack = 1.0 + 0x1p-15;  // For terms of second order and the interval's own arithmetic.
  const double shrink = step.learning_rate * step.weight_decay;
  const double drift = proven::drift_of(step.bc1, step.t) + 0.5 * proven::drift_of(step.bc2, step.t);
  ProvenScalars scalars;
  if (!proven::is_covered(step, shrink, drift)) {
    scalars.moved_error = scalars.still_error = scalars.update_error = std::nanf("");
    return scalars;
  }
  const double growth = shrink / (1.0 - shrink);
  // What decaying the weight costs: one rounding and that of 1 - lr wd. Below 2^-26 the decayed weight is the weight.
  const double decay_error = shrink < 0x1p-26 ? shrink / kUnit : 1.5 + growth;
  scalars.step_size = static_cast<float>(step.learning_rate / step.bc1);
  scalars.inverse_bc2 = static_cast<float>(1.0 / step.bc2);
  scalars.epsilon = static_cast<float>(step.epsilon);
  scalars.growth = static_cast<float>(growth);
  scalars.whole_growth = static_cast<float>(1.0 / (1.0 - shrink));
  scalars.still_error = static_cast<float>(kUnit * kSlack * ((1.0 + growth) * decay_error + 6.0 * growth));
  scalars.moved_error = static_cast<float>(kUnit * kSlack * ((1.0 + growth) * (1.0 + decay_error) + 6.0 * growth));
  scalars.update_error = static_cast<float>(kUnit * kSlack * (64.0 + 1.25 * drift));
  scalars.least_v = step.epsilon >= 0x1p-28 ? 0.0F : 0x1p-80F;
  // What decays below 2^-126 and is flushed was at most 16/15 of that.
  scalars.zero_floor = step.keeps_zeros ? 0.0F : 0x1p-125F;
  return scalars;
}

// The interval for one element.
AREAL_HOST_DEVICE inline ProvenInterval proven_interval(const ProvenScalars& scalars, float weight, float exp_avg,
                                                        float exp_avg_sq) {
  // Where m is +0, every order of the step subtracts +0.
  const bool is_still = float_bits(exp_avg) == 0;
  const float least_v = is_still ? 0.0F : scalars.least_v;
  if (!(exp_avg_sq >= least_v && exp_avg_sq <= kProvenGreatestV)) return {weight, 0.0F, float_of_bits(0x7FC00000U)};
  const float denominator =
      proven::sum(proven::root(proven::product(exp_avg_sq, scalars.inverse_bc2)), scalars.epsilon);
  const float update = proven::quotient(proven::product(scalars.step_size, exp_avg), denominator);
  const float back =
      proven::sum(proven::product(scalars.whole_growth, update), proven::product(scalars.growth, weight));

  const float size = proven::magnitude(weight);
  const float decayed = proven::sum(proven::sum(size, size), scalars.zero_floor);
  const float underflow = is_still && decayed < kProvenFloor ? decayed : kProvenFloor;
  const float of_weight = proven::product(is_still ? scalars.still_error : scalars.moved_error, size);
  const float of_update = proven::product(scalars.update_error, proven::magnitude(update));
  return {weight, back, proven::sum(of_update, proven::sum(of_weight, underflow))};
}

// Whether the interval holds a weight whose bf16 bits are not `current`, or comes as near as half way to one. Distances
// from `weight` to both ends of what rounds to its bits are exact, so nothing is lost where the update is small.
// REQUIRES: current are the bits of interval.weight.
AREAL_HOST_DEVICE constexpr bool must_mark(const ProvenInterval& interval, std::uint16_t current) {
  const std::uint32_t sign = float_bits(interval.weight) & 0x80000000U;
  const std::uint32_t cell = bits_from_bf16(current) & 0x7FFFFFFFU;
  const float size = proven::magnitude(interval.weight);
  const float outwards = float_of_bits(cell + 0x8000U) - size;
  // Zeros have no room inwards but themselves.
  const float inwards = size - float_of_bits(cell == 0 ? 0x80000001U : cell - 0x8000U);
  const float along = float_of_bits(float_bits(interval.back) ^ sign);
  // Also where something is a NaN, and around infinities.
  return !(along + interval.radius < outwards && interval.radius - along < inwards);
}

}  // namespace areal::delta
