#include "engine/algo/rejection_settings.h"

#include <fmt/format.h>

#include <cmath>

namespace areal::algo {

std::optional<RejectionLevel> rejection_level_from(std::string_view name) {
  if (name == "token") return RejectionLevel::kToken;
  if (name == "sequence") return RejectionLevel::kSequence;
  return std::nullopt;
}

std::optional<RejectionAction> rejection_action_from(std::string_view name) {
  if (name == "mask") return RejectionAction::kMask;
  if (name == "clamp") return RejectionAction::kClamp;
  return std::nullopt;
}

std::optional<RejectionMetric> rejection_metric_from(std::string_view name) {
  if (name == "ratio") return RejectionMetric::kRatio;
  if (name == "kl_k1") return RejectionMetric::kK1;
  if (name == "kl_k2") return RejectionMetric::kK2;
  if (name == "kl_k3") return RejectionMetric::kK3;
  if (name == "binary_kl") return RejectionMetric::kBinaryKl;
  return std::nullopt;
}

std::optional<RejectionAggregate> rejection_aggregate_from(std::string_view name) {
  if (name == "mean") return RejectionAggregate::kMean;
  if (name == "sum") return RejectionAggregate::kSum;
  if (name == "max") return RejectionAggregate::kMax;
  return std::nullopt;
}

Result<RejectionSettings> checked(const RejectionSettings& settings) {
  const auto refuse = [](std::string why) { return Error{Errc::kInvalid, std::move(why)}; };
  const bool is_ratio = settings.metric == RejectionMetric::kRatio;
  if (std::isnan(settings.upper)) return refuse("upper is no number");
  // `not (a <= b)` refuses a NaN too.
  if (settings.lower && !(*settings.lower <= settings.upper)) {
    return refuse(fmt::format("lower {} is above upper {}", *settings.lower, settings.upper));
  }
  if (settings.metric == RejectionMetric::kBinaryKl) return refuse("the metric binary_kl cannot be configured");
  if (settings.action == RejectionAction::kClamp && !is_ratio) return refuse("only the ratio can be clamped");
  if (is_ratio && !(settings.upper > 1)) return refuse(fmt::format("a ratio needs upper > 1, not {}", settings.upper));
  // 0 is what clamping sets itself, so that settings that were checked pass again.
  const bool is_implied = settings.action == RejectionAction::kClamp && settings.lower == 0.0;
  if (is_ratio && settings.lower && !is_implied && !(*settings.lower > 0)) {
    return refuse(fmt::format("a ratio needs lower > 0, not {}; leave it out for none", *settings.lower));
  }
  const bool is_never_negative = settings.metric == RejectionMetric::kK2 || settings.metric == RejectionMetric::kK3;
  if (is_never_negative && !(settings.upper > 0)) {
    return refuse(fmt::format("k2 and k3 are never negative: upper must be > 0, not {}", settings.upper));
  }
  RejectionSettings result = settings;
  if (settings.action == RejectionAction::kClamp && !settings.lower) result.lower = 0.0;
  return result;
}

std::string warning_of(const RejectionSettings& settings) {
  if (settings.level == RejectionLevel::kToken && settings.aggregate != RejectionAggregate::kMean) {
    return "rejection sampling of tokens aggregates nothing: agg is ignored";
  }
  return {};
}

}  // namespace areal::algo
