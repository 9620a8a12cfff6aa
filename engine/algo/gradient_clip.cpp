#include "engine/algo/gradient_clip.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace areal::algo {

double square_sum(std::span<const float> gradients) {
  double sum = 0;
  for (const float gradient : gradients) sum += static_cast<double>(gradient) * gradient;
  return sum;
}

ClipDecision decide_clip(std::span<const double> square_sums, double max_norm) {
  AREAL_CHECK(max_norm > 0);
  constexpr double kEpsilon = 1e-6;
  double sum = 0;
  for (const double part : square_sums) sum += part;
  const double norm = std::sqrt(sum);
  if (!std::isfinite(norm)) return {.norm = norm, .coefficient = 0, .step = false};
  return {.norm = norm, .coefficient = std::min(1.0, max_norm / (norm + kEpsilon)), .step = true};
}

void apply_clip(const ClipDecision& decision, std::span<float> gradients) {
  for (float& gradient : gradients) {
    gradient = decision.step ? static_cast<float>(gradient * decision.coefficient) : 0.0F;  // Not inf * 0.
  }
}

}  // namespace areal::algo
