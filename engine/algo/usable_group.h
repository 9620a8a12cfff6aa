// The least number of usable members a prompt group must have to be trained on.
//
// What is given counts; else 2 (or the group size, if that is less) where rewards or advantages are normalized within
// groups, for a lone member has nothing to be compared with; else 1. Source: spec 3.3.
#pragma once
#include <cstdint>
#include <optional>

#include "engine/base/result.h"

namespace areal::algo {

struct UsableGroupRule {
  std::optional<std::int64_t> given;
  bool has_group_statistics = false;  // In either normalization.
  std::int64_t group_size = 1;        // Members a prompt is given to.
  bool is_second_rollout = false;     // The second version of the rollout service.
};

// kInvalid: a group size under 1; a given number under 1, under 2 with group statistics, above the group size (the
// group could never be usable), or with the second rollout.
Result<std::int64_t> min_usable_group_size(const UsableGroupRule& rule);

}  // namespace areal::algo
