// The AdamW step in the operation orders that optimizers take it in, with and without contraction.
//
// All start from the weight before and the moments after; they differ in how they round, so one step has many right
// results. What inverts a step must fit all of them (proven_bound.h). Contraction, which a compiler may or may not do,
// is written out with std::fma; device compilers must be told not to contract on their own. For tests and measurements;
// the simulator takes the step of adamw.h. Pure functions.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>

#include "engine/delta/adamw.h"
#include "engine/delta/host_device.h"

namespace areal::delta {

enum class StepOrder : std::uint8_t {
  kTorch,       // torch.optim.AdamW on CPUs: w d + (-step m) / den, den = sqrt(v) / sqrt(bc2) + eps. As adamw.h.
  kTorchGpu,    // The same on devices, one tensor or many: w d + (-step) (m / den).
  kCapturable,  // With the step in a tensor: den = sqrt(v) / (sqrt(bc2) (-step)) + eps / (-step), w d + m / den.
  kTorchFused,  // fused=True: w - (lr wd) w, then less (step m) / den.
  kApex,        // FusedAdam of Apex and TransformerEngine: w - lr ((m / bc1) / (sqrt(v / bc2) + eps) + wd w).
  kInverse,     // In the order of inversion.h: w d - (step m) / (sqrt(v / bc2) + eps).
  kReciprocal,  // Divisions by scalars and by den as products with reciprocals.
};
inline constexpr std::array kStepOrders{StepOrder::kTorch,      StepOrder::kTorchGpu, StepOrder::kCapturable,
                                        StepOrder::kTorchFused, StepOrder::kApex,     StepOrder::kInverse,
                                        StepOrder::kReciprocal};

// kOther contracts the other product where a sum has two.
enum class Contraction : std::uint8_t { kOff, kOn, kOther };
inline constexpr std::array kContractions{Contraction::kOff, Contraction::kOn, Contraction::kOther};

// All that the orders use, rounded as their optimizers round.
struct OrderScalars {
  float rate = 0;
  float weight_decay = 0;
  float shrink = 0;  // lr wd.
  float decay = 0;   // 1 - lr wd.
  float epsilon = 0;
  float step_size = 0;  // lr / bc1.
  float bc2 = 0;
  float root_bc2 = 0;
  float reciprocal_root = 0;  // 1 / sqrt(bc2).
  // Of optimizers that keep betas, or their powers, in fp32.
  float apex_bc1 = 0;
  float apex_bc2 = 0;
  float tensor_step = 0;   // -lr / bc1.
  float tensor_scale = 0;  // sqrt(bc2) (-lr / bc1).
  float tensor_epsilon = 0;
};

// Of step `t`. REQUIRES: t > 0.
OrderScalars order_scalars(const AdamWSettings& settings, std::uint64_t t);

template <Contraction contraction>
AREAL_HOST_DEVICE inline float added_product(float a, float b, float c) {
  if constexpr (contraction == Contraction::kOff) {
    return a * b + c;
  } else {
    return std::fma(a, b, c);
  }
}

// The weight after the step.
template <StepOrder order, Contraction contraction>
AREAL_HOST_DEVICE inline float stepped_weight(const OrderScalars& by, float weight, float m, float v) {
  constexpr Contraction kFirst = contraction == Contraction::kOther ? Contraction::kOff : contraction;
  const float denominator = std::sqrt(v) / by.root_bc2 + by.epsilon;
  if constexpr (order == StepOrder::kTorch) {
    return added_product<contraction>(weight, by.decay, (-by.step_size * m) / denominator);
  } else if constexpr (order == StepOrder::kTorchGpu && contraction == Contraction::kOther) {
    return std::fma(weight, by.decay, -by.step_size * (m / denominator));
  } else if constexpr (order == StepOrder::kTorchGpu) {
    return added_product<contraction>(-by.step_size, m / denominator, weight * by.decay);
  } else if constexpr (order == StepOrder::kCapturable) {
    const float scaled = std::sqrt(v) / by.tensor_scale + by.tensor_epsilon;
    return added_product<contraction>(weight, by.decay, m / scaled);
  } else if constexpr (order == StepOrder::kTorchFused) {
    return added_product<contraction>(-by.shrink, weight, weight) - (by.step_size * m) / denominator;
  } else if constexpr (order == StepOrder::kApex) {
    const float unbiased = (m / by.apex_bc1) / (std::sqrt(v / by.apex_bc2) + by.epsilon);
    return added_product<contraction>(-by.rate, added_product<kFirst>(by.weight_decay, weight, unbiased), weight);
  } else if constexpr (order == StepOrder::kInverse) {
    return added_product<contraction>(weight, by.decay, -((by.step_size * m) / (std::sqrt(v / by.bc2) + by.epsilon)));
  } else {
    const float inverse = 1.0F / added_product<kFirst>(std::sqrt(v), by.reciprocal_root, by.epsilon);
    if constexpr (contraction == Contraction::kOther) {
      return std::fma(-(by.step_size * m), inverse, weight * by.decay);
    } else {
      return added_product<contraction>(weight, by.decay, -((by.step_size * m) * inverse));
    }
  }
}

using StepFunction = float (*)(const OrderScalars& by, float weight, float m, float v);

// The same, chosen at run time.
StepFunction step_function(StepOrder order, Contraction contraction);

}  // namespace areal::delta
