// Kullback-Leibler estimators over log-probabilities of sampled tokens.
//
// With d = log p - log q of the token: k1 = d, k2 = d²/2, k3 = exp(-d) - 1 + d (Schulman, "Approximating KL
// Divergence"). Pure functions; float32 in, float32 out, each element on its own.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace areal::algo {

enum class KlEstimator : std::uint8_t { kK1, kK2, kK3 };

std::optional<KlEstimator> kl_estimator_from(std::string_view name);  // "k1", "k2", "k3"

float kl_estimate(KlEstimator estimator, float d);  // Of one token.

// `clamped`: to [-10, 10]; a NaN stays one. REQUIRES: spans of one length.
std::vector<float> kl_estimate(KlEstimator estimator, bool clamped, std::span<const float> log_p,
                               std::span<const float> log_q);

}  // namespace areal::algo
