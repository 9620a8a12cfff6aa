#include "engine/algo/first_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

namespace areal::algo {

namespace {

using Bin = std::pair<std::int64_t, std::size_t>;  // Load, number of the group.
bool is_heavier(const Bin& a, const Bin& b) { return a > b; }
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

// Groups by their number of items; each class is a heap with its least loaded group on top.
class BinsByCount {
 public:
  explicit BinsByCount(std::size_t most_items)
      : classes_(most_items + 1), leaves_(std::bit_ceil(most_items + 1)), least_(2 * leaves_, kNone) {}

  void add(std::size_t items, Bin bin) {
    auto& heap = classes_[items];
    heap.push_back(bin);
    std::push_heap(heap.begin(), heap.end(), is_heavier);  // det-ok: unstable-sort: no two bins are equal
    refresh(items);
  }

  // Removes the group with the fewest items among those with a load of at most `load`.
  std::optional<Bin> take(std::int64_t load, std::size_t* items) {
    if (least_[1] > load) return std::nullopt;
    std::size_t at = 1;
    while (at < leaves_) at = least_[2 * at] <= load ? 2 * at : 2 * at + 1;
    *items = at - leaves_;
    auto& heap = classes_[*items];
    std::pop_heap(heap.begin(), heap.end(), is_heavier);  // det-ok: unstable-sort: no two bins are equal
    const Bin bin = heap.back();
    heap.pop_back();
    refresh(*items);
    return bin;
  }

 private:
  void refresh(std::size_t items) {
    std::size_t at = leaves_ + items;
    least_[at] = classes_[items].empty() ? kNone : classes_[items].front().first;
    for (at /= 2; at > 0; at /= 2) least_[at] = std::min(least_[2 * at], least_[2 * at + 1]);
  }

  std::vector<std::vector<Bin>> classes_;
  std::size_t leaves_;
  std::vector<std::int64_t> least_;  // A tree: node k has the children 2k and 2k + 1.
};

std::vector<std::size_t> descending(Lengths lengths) {
  std::vector<std::size_t> order(lengths.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  return order;
}

Groups pack(Lengths lengths, const std::vector<std::size_t>& order, std::int64_t capacity, std::size_t min_groups) {
  Groups groups;
  BinsByCount bins(lengths.size());
  for (const std::size_t index : order) {
    const std::int64_t length = lengths[index];
    std::size_t items = 0;
    std::optional<Bin> bin;
    if (groups.size() >= min_groups) bin = bins.take(capacity - length, &items);
    if (!bin) {
      bin = Bin{0, groups.size()};
      groups.emplace_back();
    }
    groups[bin->second].push_back(index);
    bins.add(items + 1, {bin->first + length, bin->second});
  }
  return groups;
}

}  // namespace

Result<Groups> first_fit_decreasing(Lengths lengths, const PackLimits& limits) {
  auto least = least_groups(lengths, limits);
  if (!least) return std::move(least).error();
  const auto divisor = static_cast<std::size_t>(std::max<std::int64_t>(1, limits.divisor));
  const std::vector<std::size_t> order = descending(lengths);
  std::size_t min_groups = *least;
  while (min_groups <= lengths.size()) {
    Groups groups = pack(lengths, order, limits.capacity, min_groups);
    if (groups.size() % divisor == 0) return groups;
    min_groups = (groups.size() / divisor + 1) * divisor;
  }
  return Error{Errc::kInvalid, fmt::format("no multiple of {} groups of {} tokens holds {} lengths", divisor,
                                           limits.capacity, lengths.size())};
}

}  // namespace areal::algo
