#include "engine/algo/balanced_greedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace areal::algo {

namespace {

using Group = std::pair<std::int64_t, std::size_t>;  // Sum, number.

bool is_fuller(const Group& a, const Group& b) { return a > b; }

// Each value to the group with the least sum that still has a seat.
Groups seat(std::span<const std::int64_t> values, std::vector<std::size_t> seats) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  std::vector<Group> open;  // A heap; the group with the least sum is on top.
  for (std::size_t group = 0; group < seats.size(); ++group) open.emplace_back(0, group);
  Groups groups(seats.size());
  for (const std::size_t index : order) {
    std::pop_heap(open.begin(), open.end(), is_fuller);  // det-ok: unstable-sort: no two groups are equal
    Group& emptiest = open.back();
    groups[emptiest.second].push_back(index);
    emptiest.first += values[index];
    if (--seats[emptiest.second] == 0) {
      open.pop_back();
    } else {
      std::push_heap(open.begin(), open.end(), is_fuller);  // det-ok: unstable-sort: no two groups are equal
    }
  }
  return groups;
}

}  // namespace

Result<Groups> balanced_greedy(std::span<const std::int64_t> values, std::size_t k, Seats seats) {
  if (k == 0 || values.size() < k) {
    return Error{Errc::kInvalid,
                 fmt::format("number of items ({}) must be >= K ({}), and K at least 1", values.size(), k)};
  }
  AREAL_TRY(check_sums(values));
  const std::size_t more = values.size() % k;
  if (more != 0 && seats == Seats::kEqual) {
    return Error{Errc::kInvalid, fmt::format("{} items are not divisible by {}", values.size(), k)};
  }
  std::vector<std::size_t> free(k, values.size() / k);
  for (std::size_t group = 0; group < more; ++group) ++free[group];
  return seat(values, std::move(free));
}

Result<BalancedBatches> balanced_batches(Lengths lengths, std::size_t per_batch) {
  if (per_batch == 0) return Error{Errc::kInvalid, "batches of no sequences"};
  AREAL_TRY(check_sums(lengths));
  BalancedBatches result;
  if (lengths.empty()) return result;
  Groups groups = seat(lengths, std::vector<std::size_t>((lengths.size() + per_batch - 1) / per_batch, per_batch));
  const std::vector<std::int64_t> sums = group_sums(lengths, groups);
  std::vector<std::size_t> order(groups.size());
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
  for (const std::size_t at : order) result.batches.push_back(std::move(groups[at]));
  result.max_difference = sums[order.front()] - sums[order.back()];
  return result;
}

}  // namespace areal::algo
