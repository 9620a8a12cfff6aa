#include "engine/algo/karmarkar_karp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/algo/first_fit.h"

namespace areal::algo {

namespace {

// The items of a set are a chain through Chains; two sets share none, so their order is that of their first items.
struct Set {
  std::int64_t sum = 0;
  std::size_t items = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

bool less(const Set& a, const Set& b) {
  if (a.sum != b.sum) return a.sum < b.sum;
  if (a.items != b.items) return a.items < b.items;
  return a.first < b.first;
}

// The sets that are not empty, in descending order; the other k - sets.size() come after them.
struct Partition {
  std::vector<Set> sets;
  std::int64_t spread = 0;
};

bool before(const Partition& a, const Partition& b) {
  if (a.spread != b.spread) return a.spread > b.spread;
  return less(b.sets.front(), a.sets.front());
}

// A binary heap with the moves of Python's heapq, which decide between partitions that are equal by before().
class Heap {
 public:
  [[nodiscard]] std::size_t size() const { return heap_.size(); }

  void push(Partition partition) {
    heap_.push_back(std::move(partition));
    rise(0, heap_.size() - 1);
  }

  Partition pop() {
    Partition last = std::move(heap_.back());
    heap_.pop_back();
    if (heap_.empty()) return last;
    std::swap(last, heap_.front());
    sink();
    return last;
  }

 private:
  void rise(std::size_t top, std::size_t at) {
    while (at > top) {
      const std::size_t parent = (at - 1) / 2;
      if (!before(heap_[at], heap_[parent])) return;
      std::swap(heap_[at], heap_[parent]);
      at = parent;
    }
  }

  // Down to a leaf along the earlier children, then up as far as its order says.
  void sink() {
    std::size_t at = 0;
    for (std::size_t child = 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && !before(heap_[child], heap_[child + 1])) ++child;
      std::swap(heap_[at], heap_[child]);
      at = child;
    }
    rise(0, at);
  }

  std::vector<Partition> heap_;
};

class Differencing {
 public:
  Differencing(Lengths lengths, std::size_t k) : lengths_(lengths), next_(lengths.size()), k_(k) {}

  // `group` of the lengths in ascending order at a time makes one partition to begin with.
  Groups run(std::size_t group) {
    Heap heap;
    const std::vector<std::size_t> order = ascending();
    for (std::size_t at = 0; at < order.size(); at += group) heap.push(start({&order[at], group}));
    while (heap.size() > 1) {
      Partition largest = heap.pop();
      const Partition second = heap.pop();
      heap.push(merged(std::move(largest), second));
    }
    Groups groups;
    if (heap.size() == 1) groups = groups_of(heap.pop());
    groups.resize(k_);
    return groups;
  }

 private:
  [[nodiscard]] std::vector<std::size_t> ascending() const {
    std::vector<std::size_t> order(lengths_.size());
    for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return lengths_[a] < lengths_[b]; });
    return order;
  }

  [[nodiscard]] Partition start(std::span<const std::size_t> indices) const {
    Partition partition;
    for (const std::size_t index : indices) partition.sets.push_back({lengths_[index], 1, index, index});
    settle(partition);
    return partition;
  }

  void settle(Partition& partition) const {
    auto& sets = partition.sets;
    std::ranges::stable_sort(sets, [](const Set& a, const Set& b) { return less(b, a); });
    partition.spread = sets.front().sum - (sets.size() < k_ ? 0 : sets.back().sum);
  }

  // Set i of `into` with set k - 1 - i of `from`.
  Partition merged(Partition into, const Partition& from) {
    const std::size_t own = into.sets.size();
    for (std::size_t at = 0; at < from.sets.size(); ++at) {
      const Set& set = from.sets[at];
      const std::size_t partner = k_ - 1 - at;
      if (partner >= own) {
        into.sets.push_back(set);
        continue;
      }
      Set& target = into.sets[partner];
      next_[target.last] = set.first;
      target = {target.sum + set.sum, target.items + set.items, target.first, set.last};
    }
    settle(into);
    return into;
  }

  [[nodiscard]] Groups groups_of(const Partition& partition) const {
    Groups groups;
    for (const Set& set : partition.sets) {
      auto& group = groups.emplace_back();
      for (std::size_t index = set.first; group.size() < set.items; index = next_[index]) group.push_back(index);
    }
    return groups;
  }

  Lengths lengths_;
  std::vector<std::size_t> next_;
  std::size_t k_;
};

}  // namespace

Result<Groups> differencing_partition(Lengths lengths, std::size_t k, GroupSizes sizes) {
  if (k == 0) return Error{Errc::kInvalid, "a partition into no groups"};
  if (std::ranges::any_of(lengths, [](std::int64_t length) { return length < 0; })) {
    return Error{Errc::kInvalid, "a negative length"};
  }
  AREAL_TRY(check_sums(lengths));
  const bool equal = sizes == GroupSizes::kEqual;
  if (equal && lengths.size() % k != 0) {
    return Error{Errc::kInvalid, fmt::format("{} lengths do not make {} groups of one size", lengths.size(), k)};
  }
  return Differencing(lengths, k).run(equal ? k : 1);
}

Result<Packed> differencing_pack(Lengths lengths, const PackLimits& limits, GroupSizes sizes) {
  auto least = least_groups(lengths, limits);
  if (!least) return std::move(least).error();
  const auto divisor = static_cast<std::size_t>(std::max<std::int64_t>(1, limits.divisor));
  std::int64_t total = 0;
  for (const std::int64_t length : lengths) total += length;
  std::int64_t needed = 0;  // total / capacity, rounded up; the sum of both may be beyond 64 bits.
  if (limits.capacity > 0) needed = total / limits.capacity + (total % limits.capacity == 0 ? 0 : 1);
  std::size_t k = std::max(*least, static_cast<std::size_t>(needed));
  k = std::min((k + divisor - 1) / divisor * divisor, lengths.size());
  auto groups = differencing_partition(lengths, k, sizes);
  if (!groups) return std::move(groups).error();
  if (std::ranges::max(group_sums(lengths, *groups)) <= limits.capacity) return Packed{*std::move(groups), false};
  auto first_fit = first_fit_decreasing(lengths, limits);
  if (!first_fit) return std::move(first_fit).error();
  return Packed{*std::move(first_fit), true};
}

}  // namespace areal::algo
