#include "engine/algo/version_staleness.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace areal::algo {

Result<Summary> summary_of(std::span<const double> values) {
  if (values.empty()) return Error{Errc::kInvalid, "no value to summarise"};
  Summary summary{0, values[0], values[0]};
  for (const double value : values) {
    summary.average += value;
    if (std::isnan(value)) return Summary{value, value, value};
    summary.most = std::max(summary.most, value);
    summary.least = std::min(summary.least, value);
  }
  summary.average /= static_cast<double>(values.size());
  return summary;
}

std::optional<VersionStaleness> version_staleness(std::span<const std::int64_t> versions, Mask mask,
                                                  std::int64_t current_version,
                                                  std::optional<std::int64_t> max_staleness) {
  AREAL_CHECK(versions.size() == mask.size());
  VersionStaleness result;
  std::vector<double> ages;
  for (std::size_t at = 0; at < versions.size(); ++at) {
    if (mask[at] == 0 || versions[at] < 0) continue;
    const std::int64_t age = current_version - versions[at];
    ages.push_back(static_cast<double>(age));
    if (max_staleness && age > *max_staleness) ++result.too_old;
    if (age < 0) ++result.too_young;
  }
  if (ages.empty()) return std::nullopt;
  result.tokens = ages.size();
  result.theta = summary_of(ages).value();
  for (double& age : ages) age -= 1;
  result.proximal = summary_of(ages).value();
  return result;
}

}  // namespace areal::algo
