#include "engine/algo/prompt_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace areal::algo {

namespace {

GroupCounts counts_of(std::span<const GroupMember> members) {
  GroupCounts counts;
  counts.target = static_cast<std::int64_t>(members.size());
  counts.usable = std::ranges::count_if(members, [](const GroupMember& member) { return member.rows.has_value(); });
  counts.is_fully_masked = counts.usable == 0;
  counts.is_singleton = counts.usable == 1;
  counts.usable_yield = static_cast<double>(counts.usable) / static_cast<double>(counts.target);
  return counts;
}

std::vector<std::int64_t> rows_of(std::span<const GroupMember> members) {
  std::vector<std::int64_t> rows;
  for (const GroupMember& member : members) {
    if (member.rows) rows.push_back(*member.rows);
  }
  return rows;
}

}  // namespace

Status check(const GroupRule& rule) {
  if (rule.group_size < 1) return Error{Errc::kInvalid, fmt::format("a group of {} members", rule.group_size)};
  if (rule.min_usable >= 1 && rule.min_usable <= rule.group_size) return Unit{};
  return Error{Errc::kInvalid,
               fmt::format("min_usable_group_size {} is outside [1, {}]", rule.min_usable, rule.group_size)};
}

Result<GroupVerdict> judge_group(const GroupRule& rule, std::span<const GroupMember> members) {
  AREAL_TRY(check(rule));
  if (static_cast<std::int64_t>(members.size()) != rule.group_size) {
    return Error{Errc::kInvalid, fmt::format("{} members in a group of {}", members.size(), rule.group_size)};
  }
  GroupVerdict verdict{false, 0, counts_of(members)};
  const std::int64_t usable = verdict.counts.usable;
  if (usable == 0 || usable < rule.min_usable || (usable < rule.group_size && rule.drops_incomplete)) return verdict;
  const std::vector<std::int64_t> rows = rows_of(members);
  if (rule.min_usable >= 2 && std::ranges::any_of(rows, [](std::int64_t own) { return own != 1; })) {
    return Error{
        Errc::kUnsupported,
        fmt::format("min_usable_group_size {} needs one row from each member, got {}: export one sample for each "
                    "episode, normalize over the batch, or unset the minimum",
                    rule.min_usable, fmt::join(rows, ", "))};
  }
  const bool has_all_rewards = usable == rule.group_size && std::ranges::all_of(members, &GroupMember::has_last_reward);
  if (rule.normalizes_rewards && !has_all_rewards) return verdict;
  verdict.is_kept = true;
  for (const std::int64_t own : rows) verdict.rows += own;
  verdict.counts.trainable = usable;
  verdict.counts.trainable_yield = verdict.counts.usable_yield;
  return verdict;
}

std::vector<double> normalized_rewards(std::span<const double> last_rewards) {
  constexpr double kEps = 1e-8;
  const auto members = static_cast<double>(last_rewards.size());
  double sum = 0;
  for (const double reward : last_rewards) sum += reward;
  const double mean = sum / members;
  double squares = 0;
  for (const double reward : last_rewards) squares += (reward - mean) * (reward - mean);
  const double deviation = std::sqrt(squares / members);
  std::vector<double> normalized;
  for (const double reward : last_rewards) normalized.push_back((reward - mean) / (deviation + kEps));
  return normalized;
}

Result<GroupMarks> mark_groups(std::span<const std::int64_t> row_tokens, std::span<const std::int64_t> group_sizes) {
  GroupMarks marks{std::vector<std::uint8_t>(row_tokens.size(), 0), std::vector<float>(row_tokens.size(), 0.0F),
                   std::vector<float>(row_tokens.size(), 0.0F)};
  std::size_t row = 0;
  for (const std::int64_t size : group_sizes) {
    if (size <= 0 || static_cast<std::size_t>(size) > row_tokens.size() - row) {
      return Error{Errc::kInvalid, fmt::format("a group of {} rows where {} are left", size, row_tokens.size() - row)};
    }
    std::int64_t tokens = 0;
    for (std::size_t own = row; own < row + static_cast<std::size_t>(size); ++own) tokens += row_tokens[own];
    marks.starts[row] = 1;
    marks.sizes[row] = static_cast<float>(size);
    marks.loss_weights[row] = static_cast<float>(tokens);
    row += static_cast<std::size_t>(size);
  }
  if (row != row_tokens.size()) {
    return Error{Errc::kInvalid, fmt::format("groups of {} rows for {}", row, row_tokens.size())};
  }
  return marks;
}

}  // namespace areal::algo
