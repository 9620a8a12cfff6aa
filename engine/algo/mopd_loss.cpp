#include "engine/algo/mopd_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace areal::algo {

namespace {

template <class Value>
Status check_tokens(const MopdTokens<Value>& tokens, Mask normalization, double cap) {
  const std::size_t size = tokens.new_logp.size();
  for (const std::size_t other : {tokens.behaviour_logp.size(), tokens.teacher_logp_sum.size(),
                                  tokens.teacher_weight_sum.size(), tokens.mask.size(), normalization.size()}) {
    if (other != size) return Error{Errc::kInvalid, fmt::format("{} tokens beside {}", other, size)};
  }
  if (!std::isfinite(cap) || cap <= 0) return Error{Errc::kInvalid, fmt::format("the ratio's cap is {}", cap)};
  for (std::size_t at = 0; at < size; ++at) {
    if (tokens.mask[at] == 0) continue;
    if (normalization[at] == 0) {
      return Error{Errc::kInvalid, fmt::format("token {} is kept but was never counted", at)};
    }
    if (!std::isfinite(tokens.new_logp[at]) || !std::isfinite(tokens.behaviour_logp[at]) ||
        !std::isfinite(tokens.teacher_logp_sum[at]) || !std::isfinite(tokens.teacher_weight_sum[at])) {
      return Error{Errc::kInvalid, fmt::format("token {} has a value that is not finite", at)};
    }
  }
  return Unit{};
}

}  // namespace

template <class Value>
Result<MopdLoss> mopd_loss(const MopdTokens<Value>& tokens, double importance_ratio_cap) {
  const Mask normalization = tokens.normalization.value_or(tokens.mask);
  AREAL_TRY(check_tokens(tokens, normalization, importance_ratio_cap));
  const std::size_t size = tokens.new_logp.size();
  MopdLoss made{.denominator = count(normalization),
                .gradient = std::vector<double>(size, 0.0),
                .importance_weight = std::vector<double>(size, 0.0),
                .score = std::vector<double>(size, 0.0),
                .reverse_kl = std::vector<double>(size, 0.0)};
  const double denominator = std::max(1.0, static_cast<double>(made.denominator));
  const double log_cap = std::log(importance_ratio_cap);
  for (std::size_t at = 0; at < size; ++at) {
    if (tokens.mask[at] == 0) continue;  // Before the exponential, which may overflow there.
    const double now = tokens.new_logp[at];
    const double log_ratio = std::min(now - static_cast<double>(tokens.behaviour_logp[at]), log_cap);
    made.importance_weight[at] = std::min(std::exp(log_ratio), importance_ratio_cap);
    made.score[at] = static_cast<double>(tokens.teacher_logp_sum[at]) - tokens.teacher_weight_sum[at] * now;
    made.reverse_kl[at] = -made.importance_weight[at] * made.score[at];
    made.gradient[at] = made.reverse_kl[at] / denominator;
    made.loss += made.reverse_kl[at];
  }
  made.loss /= denominator;
  return made;
}

template Result<MopdLoss> mopd_loss<float>(const MopdTokens<float>&, double);
template Result<MopdLoss> mopd_loss<double>(const MopdTokens<double>&, double);

Status check_coefficients(const MopdCoefficients& coefficients) {
  const auto& [rl, distillation] = coefficients;
  const auto is_allowed = [](double value) { return std::isfinite(value) && value >= 0; };
  if (is_allowed(rl) && is_allowed(distillation) && (rl > 0 || distillation > 0)) return Unit{};
  return Error{Errc::kInvalid, fmt::format("coefficients {} and {}: finite, at least 0, not both 0", rl, distillation)};
}

double compose_mopd(const MopdCoefficients& coefficients, double rl, double distillation) {
  if (coefficients.rl == 0) return coefficients.distillation * distillation;
  if (coefficients.distillation == 0) return coefficients.rl * rl;
  return coefficients.rl * rl + coefficients.distillation * distillation;
}

}  // namespace areal::algo
