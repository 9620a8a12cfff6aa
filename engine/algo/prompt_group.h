// What becomes of a prompt's group of answers when some are missing: kept, dropped, or refused; and its numbers.
//
// Pure functions. Source: spec 2.7, 2.10.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

struct GroupRule {
  std::int64_t group_size = 1;  // Members the prompt was given to.
  std::int64_t min_usable = 1;
  bool drops_incomplete = false;
  bool normalizes_rewards = false;  // Within the group: all members are needed, each with a reward.
};

// kInvalid: a group size under 1; min_usable outside [1, group_size].
Status check(const GroupRule& rule);

// A member: how many rows it brought, or nothing if it failed.
struct GroupMember {
  std::optional<std::int64_t> rows;
  bool has_last_reward = true;  // On its last interaction.
};

struct GroupCounts {
  std::int64_t target = 0;     // Members asked.
  std::int64_t usable = 0;     // Members that brought something.
  std::int64_t trainable = 0;  // The usable ones of a group that is kept.
  bool is_fully_masked = false;
  bool is_singleton = false;  // One usable member.
  double usable_yield = 0;    // usable / target
  double trainable_yield = 0;
};

struct GroupVerdict {
  bool is_kept = false;
  std::int64_t rows = 0;  // Of a group that is kept.
  GroupCounts counts;
};

// Dropped: no usable member; an incomplete group if those are dropped; fewer usable members than min_usable; reward
// normalization without all rewards. kUnsupported, a broken contract that no retry mends: min_usable of 2 or more and a
// usable member with another number of rows than one, for then rows are not members. kInvalid: as check(), or another
// number of members than the group size.
Result<GroupVerdict> judge_group(const GroupRule& rule, std::span<const GroupMember> members);

// (r - mean) / (population deviation + 1e-8); a lone reward becomes 0.
std::vector<double> normalized_rewards(std::span<const double> last_rewards);

// For the statistics of an update, on the first row of each group and 0 elsewhere.
struct GroupMarks {
  std::vector<std::uint8_t> starts;
  std::vector<float> sizes;         // Rows of the group.
  std::vector<float> loss_weights;  // Its trained tokens.
};

// kInvalid: a size that is not positive, or sizes that do not add up to the number of rows.
Result<GroupMarks> mark_groups(std::span<const std::int64_t> row_tokens, std::span<const std::int64_t> group_sizes);

}  // namespace areal::algo
