#include "engine/algo/rejection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/algo/binary_kl.h"
#include "engine/algo/exponential.h"
#include "engine/algo/kl_estimator.h"

namespace areal::algo {

namespace {

struct Bounds {
  float lower = -std::numeric_limits<float>::infinity();
  float upper = 0;

  [[nodiscard]] bool hold(float value) const { return value >= lower && value <= upper; }
  [[nodiscard]] float clamp(float value) const { return value < lower ? lower : (value > upper ? upper : value); }
};

// What is compared in fp32 has its bounds in fp32.
Bounds bounds_of(const RejectionSettings& settings) {
  Bounds bounds;
  bounds.upper = static_cast<float>(settings.upper);
  if (settings.lower) bounds.lower = static_cast<float>(*settings.lower);
  return bounds;
}

// A NaN wins.
float greater(float a, float b) { return std::isnan(a) || a > b ? a : b; }

float metric_of(RejectionMetric metric, float proximal, float old) {
  const float d = proximal - old;
  switch (metric) {
    case RejectionMetric::kRatio:
      return d;  // Aggregated as a log-ratio.
    case RejectionMetric::kK1:
      return kl_estimate(KlEstimator::kK1, d);
    case RejectionMetric::kK2:
      return kl_estimate(KlEstimator::kK2, d);
    case RejectionMetric::kK3:
      return kl_estimate(KlEstimator::kK3, d);
    case RejectionMetric::kBinaryKl:
      return greater(binary_kl(proximal, old), binary_kl(old, proximal));
  }
  AREAL_CHECK(false);
}

float aggregate(RejectionAggregate how, std::span<const float> values, Mask mask) {
  if (count(mask) == 0) return 0;
  switch (how) {
    case RejectionAggregate::kMean:
      return static_cast<float>(masked_mean(values, mask));
    case RejectionAggregate::kSum:
      return static_cast<float>(masked_sum(values, mask));
    case RejectionAggregate::kMax: {
      float greatest = -std::numeric_limits<float>::infinity();
      for (std::size_t at = 0; at < values.size(); ++at) {
        if (mask[at] != 0) greatest = greater(greatest, values[at]);
      }
      return greatest;
    }
  }
  AREAL_CHECK(false);
}

struct Judgement {
  std::vector<std::uint8_t> holds;
  std::vector<float> weights;
};

Judgement judge_tokens(const RejectionSettings& settings, const Bounds& bounds, std::span<const float> metric,
                       std::span<const float> log_ratio) {
  Judgement judgement;
  for (std::size_t at = 0; at < metric.size(); ++at) {
    const float weight = exp_of<float>(log_ratio[at]);
    judgement.weights.push_back(weight);
    judgement.holds.push_back(bounds.hold(settings.metric == RejectionMetric::kRatio ? weight : metric[at]) ? 1 : 0);
  }
  return judgement;
}

Judgement judge_sequences(const RejectionSettings& settings, const Bounds& bounds, std::span<const float> metric,
                          std::span<const float> log_ratio, Mask mask, const Rows& rows) {
  const bool is_ratio = settings.metric == RejectionMetric::kRatio;
  Judgement judgement;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::span<const float> logs = rows.of(log_ratio, row);
    const Mask kept = rows.of(mask, row);
    const float value = aggregate(settings.aggregate, is_ratio ? logs : rows.of(metric, row), kept);
    const bool holds = bounds.hold(is_ratio ? exp_of<float>(value) : value);
    judgement.holds.insert(judgement.holds.end(), logs.size(), holds ? 1 : 0);
    const float mean = is_ratio ? static_cast<float>(masked_mean(logs, kept)) : 0.0F;
    for (const float log : logs) judgement.weights.push_back(exp_of<float>(is_ratio ? mean : log));
  }
  return judgement;
}

Status check_lengths(const RejectionSettings& settings, std::size_t proximal, std::size_t old, std::size_t mask,
                     const Rows* rows) {
  if (proximal != old || proximal != mask || (rows != nullptr && rows->elements() != proximal)) {
    return Error{Errc::kInvalid, fmt::format("proximal has {} tokens, old {}, mask {}, rows {}", proximal, old, mask,
                                             rows != nullptr ? rows->elements() : proximal)};
  }
  if (settings.level == RejectionLevel::kSequence && rows == nullptr) {
    return Error{Errc::kInvalid, "rejection of packed sequences needs to know where they lie (cu_seqlens)"};
  }
  return Unit{};
}

}  // namespace

Result<Rejection> apply_rejection(const RejectionSettings& settings, std::span<const float> proximal,
                                  std::span<const float> old, Mask mask, const Rows* rows) {
  AREAL_TRY(check_lengths(settings, proximal.size(), old.size(), mask.size(), rows));
  const std::size_t length = proximal.size();
  std::vector<float> metric(length);
  std::vector<float> log_ratio(length);
  for (std::size_t at = 0; at < length; ++at) {
    metric[at] = metric_of(settings.metric, proximal[at], old[at]);
    const float d = proximal[at] - old[at];
    log_ratio[at] = std::isfinite(d) ? d : 0.0F;
  }
  const Bounds bounds = bounds_of(settings);
  const Judgement judgement = settings.level == RejectionLevel::kToken
                                  ? judge_tokens(settings, bounds, metric, log_ratio)
                                  : judge_sequences(settings, bounds, metric, log_ratio, mask, *rows);
  Rejection result{std::vector<std::uint8_t>(length), std::vector<float>(length)};
  std::size_t trained = 0;
  std::size_t filtered = 0;
  for (std::size_t at = 0; at < length; ++at) {
    if (mask[at] == 0) continue;
    ++trained;
    float weight = judgement.weights[at];
    bool is_kept = true;
    if (settings.action == RejectionAction::kMask) {
      is_kept = judgement.holds[at] != 0;
      if (!is_kept) ++filtered;
    } else if (settings.level == RejectionLevel::kToken || judgement.holds[at] == 0) {
      const float clamped = bounds.clamp(weight);
      if (clamped != weight) ++filtered;
      weight = clamped;
    }
    result.kept[at] = is_kept ? 1 : 0;
    result.weights[at] = is_kept ? weight : 0.0F;
  }
  result.filtered_fraction = static_cast<double>(filtered) / static_cast<double>(std::max<std::size_t>(1, trained));
  return result;
}

}  // namespace areal::algo
