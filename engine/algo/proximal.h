// Log-probabilities of the proximal policy: where they come from, and how they are approximated without a forward pass.
//
// A token that version v sampled while version c is trained: alpha = clamp((c - 1 - v) / (c - v), 0, 1) if v < c and
// v >= 0, else 0. loglinear: old + alpha (new - old); linear: log((1 - alpha) e^old + alpha e^new + 1e-10); rollout:
// old. The weights under training are version c, yet the formula takes c - 1 for the proximal one: that is AReaL's
// definition (arXiv 2505.24298 and its prox_logp_method). `versions` must be aligned as the log-probabilities are:
// rolled_left() of next_token.h does it, which the reference leaves out, so that it takes the first sampled token for a
// prompt's (alpha 0). fp32; nats. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

enum class ProximalApproximation : std::uint8_t { kLoglinear, kLinear, kRollout };
enum class ProximalMethod : std::uint8_t { kRecompute, kLoglinear, kMetrics, kReuseTrainLogp };

std::optional<ProximalApproximation> proximal_approximation_from(std::string_view name);
std::optional<ProximalMethod> proximal_method_from(std::string_view name);  // "recompute", …, "reuse_train_logp"

// Whether a method does without the forward pass before the update.
bool skips_forward_pass(ProximalMethod method);

// When an own forward pass computes proximal log-probabilities before the update: for decoupled losses unless the
// method skips it, for others if they recompute log-probabilities.
struct ProximalRule {
  bool decoupled_loss = false;
  bool recompute_logprob = false;
  ProximalMethod method = ProximalMethod::kRecompute;

  [[nodiscard]] bool needs_forward() const { return decoupled_loss ? !skips_forward_pass(method) : recompute_logprob; }
};

float proximal_alpha(std::int64_t version, std::int64_t current_version);

// Of each token. REQUIRES: spans of one length.
std::vector<float> approximate_proximal(ProximalApproximation how, std::span<const float> old,
                                        std::span<const float> logprobs, std::span<const std::int64_t> versions,
                                        std::int64_t current_version);

// What a loss knows of the proximal policy.
struct ProximalSources {
  std::span<const float> old;
  std::span<const float> logprobs;  // Used as constants.
  std::optional<std::span<const float>> recomputed;
  std::optional<std::span<const std::int64_t>> versions;  // Aligned.
  std::optional<std::int64_t> current_version;
};

// The recomputed ones if there are any, else the approximation that the method names. kInvalid: nothing was recomputed
// by a method that needs it, or there are no versions, or lengths differ. kCorrupt: nothing to use after all, or a
// value that is not finite at any token, masked or not.
Result<std::vector<float>> resolve_proximal(ProximalMethod method, const ProximalSources& sources);

// exp(numerator - denominator) of each token. REQUIRES: spans of one length.
std::vector<float> importance_weights(std::span<const float> numerator, std::span<const float> denominator);
std::vector<float> importance_weights(std::span<const double> numerator, std::span<const double> denominator);

// How far an approximation is off: |g - a|, that divided by |g| + 1e-8, and its square.
struct ApproximationErrors {
  std::vector<float> absolute;
  std::vector<float> relative;
  std::vector<float> squared;
};
ApproximationErrors approximation_errors(std::span<const float> ground_truth, std::span<const float> approximation);

}  // namespace areal::algo
