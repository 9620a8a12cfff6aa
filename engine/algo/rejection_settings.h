// How rejection sampling judges tokens that another policy than the proximal one sampled, and what settings it refuses.
// Source: the rejection sampling settings of AReaL.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace areal::algo {

enum class RejectionLevel : std::uint8_t { kToken, kSequence };
// kMask drops what is out of bounds; kClamp keeps it with a bounded weight.
enum class RejectionAction : std::uint8_t { kMask, kClamp };
// Of d = proximal - old: exp(d), and the estimators of kl_estimator.h. kBinaryKl is the greater of binary_kl.h from old
// to proximal and back; the reference has it in its function, but refuses to configure it, and so does checked().
enum class RejectionMetric : std::uint8_t { kRatio, kK1, kK2, kK3, kBinaryKl };
enum class RejectionAggregate : std::uint8_t { kMean, kSum, kMax };

std::optional<RejectionLevel> rejection_level_from(std::string_view name);          // "token", "sequence"
std::optional<RejectionAction> rejection_action_from(std::string_view name);        // "mask", "clamp"
std::optional<RejectionMetric> rejection_metric_from(std::string_view name);        // "ratio", "kl_k1", …, "binary_kl"
std::optional<RejectionAggregate> rejection_aggregate_from(std::string_view name);  // "mean", "sum", "max"

struct RejectionSettings {
  RejectionLevel level = RejectionLevel::kToken;
  RejectionAction action = RejectionAction::kMask;
  RejectionMetric metric = RejectionMetric::kRatio;
  RejectionAggregate aggregate = RejectionAggregate::kMean;  // Of sequences; tokens have nothing to aggregate.
  double upper = 5.0;                                        // Bounds are inside.
  std::optional<double> lower;                               // None: unbounded below.
};

// The settings with the lower bound that clamping implies (0); checked once more they stay. kInvalid: a bound that is a
// NaN; lower above upper; a ratio with upper <= 1 or with lower <= 0, except for the 0 of clamping; k2 and k3 with an
// upper bound <= 0; clamping another metric than the ratio; the metric binary_kl.
Result<RejectionSettings> checked(const RejectionSettings& settings);

// What a person should hear about settings that are allowed: an aggregate that tokens ignore. Empty: nothing.
std::string warning_of(const RejectionSettings& settings);

}  // namespace areal::algo
