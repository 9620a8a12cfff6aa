#include "engine/algo/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace areal::algo {

Status check_sums(std::span<const std::int64_t> values) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t sum = 0;  // Of magnitudes: at most kMost before, so that one more still fits.
  for (const std::int64_t value : values) {
    sum += value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    if (sum > kMost) return Error{Errc::kInvalid, "the sum of all lengths is beyond 64 bits"};
  }
  return Unit{};
}

Result<std::size_t> least_groups(Lengths lengths, const PackLimits& limits) {
  for (const std::int64_t length : lengths) {
    if (length < 0) return Error{Errc::kInvalid, fmt::format("a length of {} tokens", length)};
    if (length > limits.capacity) {
      return Error{Errc::kInvalid,
                   fmt::format("a length of {} tokens is above the capacity of a group, {}", length, limits.capacity)};
    }
  }
  AREAL_TRY(check_sums(lengths));
  const std::int64_t least = std::max({std::int64_t{1}, limits.min_groups, limits.divisor});
  if (static_cast<std::int64_t>(lengths.size()) < least) {
    return Error{Errc::kInvalid, fmt::format("{} lengths for at least {} groups", lengths.size(), least)};
  }
  return static_cast<std::size_t>(least);
}

std::vector<std::int64_t> group_sums(Lengths lengths, const Groups& groups) {
  std::vector<std::int64_t> sums;
  sums.reserve(groups.size());
  for (const auto& group : groups) {
    std::int64_t sum = 0;
    for (const std::size_t index : group) sum += lengths[index];
    sums.push_back(sum);
  }
  return sums;
}

PackingMetrics packing_metrics(Lengths lengths, const Groups& groups, std::int64_t capacity) {
  PackingMetrics metrics;
  metrics.sums = group_sums(lengths, groups);
  if (groups.empty()) return metrics;
  const auto [least, greatest] = std::ranges::minmax_element(metrics.sums);
  metrics.min_load = *least;
  metrics.max_load = *greatest;
  metrics.spread = *greatest - *least;
  std::int64_t total = 0;
  for (const std::int64_t sum : metrics.sums) total += sum;
  const auto count = static_cast<double>(groups.size());
  metrics.mean_load = static_cast<double>(total) / count;
  double squares = 0;
  for (const std::int64_t sum : metrics.sums) {
    const double off = static_cast<double>(sum) - metrics.mean_load;
    squares += off * off;
  }
  metrics.deviation = std::sqrt(squares / count);
  std::int64_t room = 0;
  if (__builtin_mul_overflow(capacity, static_cast<std::int64_t>(groups.size()), &room)) {
    room = std::numeric_limits<std::int64_t>::max();
  }
  metrics.wasted = room - total;
  if (room > 0) metrics.utilization = static_cast<double>(total) / static_cast<double>(room);
  if (metrics.mean_load > 0) {
    metrics.imbalance_ratio = static_cast<double>(metrics.spread) / metrics.mean_load;
    metrics.variation = metrics.deviation / metrics.mean_load;
    metrics.max_load_ratio = static_cast<double>(metrics.max_load) / metrics.mean_load;
  }
  return metrics;
}

}  // namespace areal::algo
