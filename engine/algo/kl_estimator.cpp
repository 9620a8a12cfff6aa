#include "engine/algo/kl_estimator.h"

#include <cstddef>

#include "engine/algo/exponential.h"
#include "engine/base/check.h"

namespace areal::algo {

namespace {

constexpr float kBound = 10.0F;

// A NaN is on neither side of a bound, and stays.
float clamp(float value) {
  if (value < -kBound) return -kBound;
  return value > kBound ? kBound : value;
}

}  // namespace

std::optional<KlEstimator> kl_estimator_from(std::string_view name) {
  if (name == "k1") return KlEstimator::kK1;
  if (name == "k2") return KlEstimator::kK2;
  if (name == "k3") return KlEstimator::kK3;
  return std::nullopt;
}

float kl_estimate(KlEstimator estimator, float d) {
  switch (estimator) {
    case KlEstimator::kK1:
      return d;
    case KlEstimator::kK2:
      return d * d * 0.5F;
    case KlEstimator::kK3:
      return exp_of<float>(-d) - 1.0F + d;
  }
  AREAL_CHECK(false);
}

std::vector<float> kl_estimate(KlEstimator estimator, bool clamped, std::span<const float> log_p,
                               std::span<const float> log_q) {
  AREAL_CHECK(log_p.size() == log_q.size());
  std::vector<float> kl(log_p.size());
  for (std::size_t at = 0; at < kl.size(); ++at) {
    const float value = kl_estimate(estimator, log_p[at] - log_q[at]);
    kl[at] = clamped ? clamp(value) : value;
  }
  return kl;
}

}  // namespace areal::algo
