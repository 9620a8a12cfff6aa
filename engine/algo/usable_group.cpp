#include "engine/algo/usable_group.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::algo {

Result<std::int64_t> min_usable_group_size(const UsableGroupRule& rule) {
  constexpr std::int64_t kPair = 2;
  if (rule.group_size < 1) return Error{Errc::kInvalid, fmt::format("a group of {} members", rule.group_size)};
  if (!rule.given) return rule.has_group_statistics ? std::min(kPair, rule.group_size) : 1;
  const std::int64_t given = *rule.given;
  if (rule.is_second_rollout) {
    return Error{Errc::kInvalid, "min_usable_group_size is not supported by the second version of the rollout service"};
  }
  if (given < 1) return Error{Errc::kInvalid, fmt::format("min_usable_group_size must be at least 1, got {}", given)};
  if (given < kPair && rule.has_group_statistics) {
    return Error{Errc::kInvalid,
                 fmt::format("min_usable_group_size must be at least 2 with group statistics, got {}", given)};
  }
  if (given > rule.group_size) {
    return Error{Errc::kInvalid,
                 fmt::format("min_usable_group_size {} is above the group size {}", given, rule.group_size)};
  }
  return given;
}

}  // namespace areal::algo
