#include "engine/algo/proximal.h"

#include <algorithm>
#include <cmath>

#include "engine/algo/exponential.h"

namespace areal::algo {

std::optional<ProximalApproximation> proximal_approximation_from(std::string_view name) {
  if (name == "loglinear") return ProximalApproximation::kLoglinear;
  if (name == "linear") return ProximalApproximation::kLinear;
  if (name == "rollout") return ProximalApproximation::kRollout;
  return std::nullopt;
}

std::optional<ProximalMethod> proximal_method_from(std::string_view name) {
  if (name == "recompute") return ProximalMethod::kRecompute;
  if (name == "loglinear") return ProximalMethod::kLoglinear;
  if (name == "metrics") return ProximalMethod::kMetrics;
  if (name == "reuse_train_logp") return ProximalMethod::kReuseTrainLogp;
  return std::nullopt;
}

bool skips_forward_pass(ProximalMethod method) {
  return method == ProximalMethod::kLoglinear || method == ProximalMethod::kReuseTrainLogp;
}

float proximal_alpha(std::int64_t version, std::int64_t current_version) {
  if (version < 0 || version >= current_version) return 0;
  const float alpha = static_cast<float>(current_version - 1 - version) / static_cast<float>(current_version - version);
  return std::clamp(alpha, 0.0F, 1.0F);
}

std::vector<float> approximate_proximal(ProximalApproximation how, std::span<const float> old,
                                        std::span<const float> logprobs, std::span<const std::int64_t> versions,
                                        std::int64_t current_version) {
  AREAL_CHECK(logprobs.size() == old.size() && versions.size() == old.size());
  std::vector<float> proximal(old.begin(), old.end());
  if (how == ProximalApproximation::kRollout) return proximal;
  for (std::size_t at = 0; at < old.size(); ++at) {
    const float alpha = proximal_alpha(versions[at], current_version);
    if (how == ProximalApproximation::kLinear) {
      const float mixed = (1.0F - alpha) * exp_of<float>(old[at]) + alpha * exp_of<float>(logprobs[at]);
      proximal[at] = std::log(mixed + 1e-10F);
    } else if (alpha != 0) {
      // Without a share of the new policy nothing of it is read: 0 times an infinity would be a NaN.
      proximal[at] = old[at] + alpha * (logprobs[at] - old[at]);
    }
  }
  return proximal;
}

Result<std::vector<float>> resolve_proximal(ProximalMethod method, const ProximalSources& sources) {
  std::vector<float> proximal;
  if (sources.recomputed) {
    proximal.assign(sources.recomputed->begin(), sources.recomputed->end());
  } else {
    if (!skips_forward_pass(method)) {
      return Error{Errc::kInvalid, "this method needs the forward pass that recomputes log-probabilities"};
    }
    if (method == ProximalMethod::kLoglinear && !sources.versions) {
      return Error{Errc::kInvalid, "neither recomputed log-probabilities nor versions to approximate them from"};
    }
    if (method == ProximalMethod::kReuseTrainLogp || !sources.current_version) {
      return Error{Errc::kCorrupt, "no proximal log-probabilities: nothing computed them"};
    }
    if (sources.versions->size() != sources.old.size() || sources.logprobs.size() != sources.old.size()) {
      return Error{Errc::kInvalid, "log-probabilities and versions differ in length"};
    }
    proximal = approximate_proximal(ProximalApproximation::kLoglinear, sources.old, sources.logprobs, *sources.versions,
                                    *sources.current_version);
  }
  if (!std::ranges::all_of(proximal, [](float value) { return std::isfinite(value); })) {
    return Error{Errc::kCorrupt, "proximal log-probabilities with a NaN or an infinity"};
  }
  return proximal;
}

namespace {

template <class Real>
std::vector<float> weights_of(std::span<const Real> numerator, std::span<const Real> denominator) {
  AREAL_CHECK(numerator.size() == denominator.size());
  std::vector<float> weights(numerator.size());
  for (std::size_t at = 0; at < weights.size(); ++at) {
    weights[at] = static_cast<float>(exp_of<Real>(numerator[at] - denominator[at]));
  }
  return weights;
}

}  // namespace

std::vector<float> importance_weights(std::span<const float> numerator, std::span<const float> denominator) {
  return weights_of(numerator, denominator);
}

std::vector<float> importance_weights(std::span<const double> numerator, std::span<const double> denominator) {
  return weights_of(numerator, denominator);
}

ApproximationErrors approximation_errors(std::span<const float> ground_truth, std::span<const float> approximation) {
  AREAL_CHECK(ground_truth.size() == approximation.size());
  ApproximationErrors errors;
  for (std::size_t at = 0; at < ground_truth.size(); ++at) {
    const float off = std::abs(ground_truth[at] - approximation[at]);
    errors.absolute.push_back(off);
    errors.relative.push_back(off / (std::abs(ground_truth[at]) + 1e-8F));
    errors.squared.push_back(off * off);
  }
  return errors;
}

}  // namespace areal::algo
