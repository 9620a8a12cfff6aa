// Packers, against plain forms of the same rules.
#include "engine/algo/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/algo/balanced_greedy.h"
#include "engine/algo/contiguous_partition.h"
#include "engine/algo/dispatch.h"
#include "engine/algo/first_fit.h"
#include "engine/algo/karmarkar_karp.h"
#include "tests/algo/random_values.h"

namespace areal::algo {
namespace {

std::vector<std::int64_t> draw_lengths(Rng& rng, std::size_t count, std::int64_t longest) {
  std::vector<std::int64_t> lengths;
  for (std::size_t at = 0; at < count; ++at) lengths.push_back(draw_between(rng, 0, longest));
  return lengths;
}

void expect_cover(const Groups& groups, std::size_t count) {
  std::vector<std::size_t> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), count);
  for (std::size_t at = 0; at < count; ++at) EXPECT_EQ(all[at], at);
}

// The rule word by word: all bins in order of load, the first with the fewest items among those with room.
Groups plain_first_fit(const std::vector<std::int64_t>& lengths, const PackLimits& limits) {
  std::vector<std::size_t> order(lengths.size());
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  Groups groups;
  std::vector<std::int64_t> loads;
  for (const std::size_t index : order) {
    std::optional<std::size_t> best;
    for (std::size_t bin = 0; bin < groups.size(); ++bin) {
      if (loads[bin] + lengths[index] > limits.capacity) continue;
      const auto key = [&](std::size_t of) { return std::pair(groups[of].size(), loads[of]); };
      if (!best || key(bin) < key(*best)) best = bin;
    }
    if (static_cast<std::int64_t>(groups.size()) < limits.min_groups || !best) {
      best = groups.size();
      groups.emplace_back();
      loads.push_back(0);
    }
    groups[*best].push_back(index);
    loads[*best] += lengths[index];
  }
  return groups;
}

TEST(FirstFit, IsThePlainRule) {
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t count = draw_between(rng, 1, 60);
    const auto lengths = draw_lengths(rng, static_cast<std::size_t>(count), round % 2 == 0 ? 9 : 500);
    PackLimits limits{draw_between(rng, 500, 1500), 1, 1};
    limits.min_groups = draw_between(rng, 1, static_cast<std::int64_t>(lengths.size()));
    EXPECT_EQ(first_fit_decreasing(lengths, limits).value(), plain_first_fit(lengths, limits));
  }
}

TEST(FirstFit, KeepsCapacityDivisorAndAllIndices) {
  Rng rng(2);
  for (const std::int64_t divisor : {1, 2, 3}) {
    for (const std::int64_t least : {1, 2, 4, 8}) {
      for (const std::int64_t capacity : {24, 36, 48, 100}) {
        const auto lengths = draw_lengths(rng, 40, 24);
        const auto groups = first_fit_decreasing(lengths, {capacity, least, divisor}).value();
        expect_cover(groups, lengths.size());
        EXPECT_EQ(groups.size() % static_cast<std::size_t>(divisor), 0U);
        EXPECT_GE(static_cast<std::int64_t>(groups.size()), least);
        for (const std::int64_t sum : group_sums(lengths, groups)) EXPECT_LE(sum, capacity);
      }
    }
  }
}

// 100,000 sequences; quadratic search would take minutes.
TEST(FirstFit, ManySequences) {
  Rng rng(3);
  const auto lengths = draw_lengths(rng, 100'000, 4096);
  const auto groups = first_fit_decreasing(lengths, {16'384, 8, 8}).value();
  expect_cover(groups, lengths.size());
  EXPECT_GT(packing_metrics(lengths, groups, 16'384).utilization, 0.9);
}

TEST(Packers, RefuseWhatDoesNotFit) {
  const std::vector<std::int64_t> lengths = {5, 11};
  const std::vector<std::int64_t> negative = {5, -1};
  EXPECT_FALSE(first_fit_decreasing(lengths, {10, 1, 1}));
  EXPECT_FALSE(first_fit_decreasing(lengths, {20, 3, 1}));
  EXPECT_FALSE(first_fit_decreasing({}, {20, 1, 1}));
  EXPECT_FALSE(first_fit_decreasing(negative, {20, 1, 1}));
  EXPECT_FALSE(differencing_pack(lengths, {10, 1, 1}));
  EXPECT_FALSE(differencing_pack(lengths, {20, 1, 4}));
  EXPECT_FALSE(differencing_pack({}, {20, 1, 1}));
  EXPECT_FALSE(differencing_pack(negative, {20, 1, 1}));
  EXPECT_FALSE(differencing_partition(lengths, 0));
}

// Sums that wrap around would make the fullest group the emptiest.
TEST(Packers, RefuseSumsBeyond64Bits) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> huge = {kMost, kMost, 5};
  EXPECT_FALSE(first_fit_decreasing(huge, {kMost, 1, 1}));
  EXPECT_FALSE(differencing_pack(huge, {kMost, 1, 1}));
  EXPECT_FALSE(differencing_partition(huge, 2));
  EXPECT_FALSE(balanced_greedy(huge, 2, Seats::kRagged));
  EXPECT_FALSE(balanced_batches(huge, 2));
  EXPECT_FALSE(contiguous_partition(huge, 2));
  EXPECT_FALSE(contiguous_partition(std::vector<std::int64_t>{kMost, 0}, 1));
  EXPECT_EQ(contiguous_partition(std::vector<std::int64_t>{kMost - 2, 1}, 2).value().size(), 2U);
  EXPECT_FALSE(dispatched(huge, 1, 3));
  EXPECT_FALSE(balanced_greedy(std::vector<std::int64_t>{kMost, -1}, 1, Seats::kEqual));
  EXPECT_FALSE(balanced_batches(std::vector<std::int64_t>{-kMost - 1}, 1));
  EXPECT_TRUE(balanced_greedy(std::vector<std::int64_t>{-kMost}, 1, Seats::kEqual));
}

// With no limit to speak of, groups are as few as they may be.
TEST(Packers, AHugeCapacityMakesTheLeastGroups) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{1, 1}, {1, 2}, {30, 40, 50}}) {
    for (const std::int64_t least : {1, 2}) {
      const auto wanted = static_cast<std::size_t>(least);
      EXPECT_EQ(first_fit_decreasing(lengths, {kMost, least, 1}).value().size(), wanted);
      EXPECT_EQ(differencing_pack(lengths, {kMost, least, 1}).value().groups.size(), wanted);
    }
    EXPECT_GT(packing_metrics(lengths, {{0}, {1}}, kMost).wasted, kMost / 2);
  }
}

// The method with all k sets written out, empty ones too, and with the moves of heapq.
class PlainDifferencing {
 public:
  using Set = std::tuple<std::int64_t, std::size_t, std::vector<std::size_t>>;  // In the order of sets.
  using Partition = std::vector<Set>;

  static Groups run(const std::vector<std::int64_t>& lengths, std::size_t k) {
    std::vector<std::size_t> order(lengths.size());
    for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return lengths[a] < lengths[b]; });
    PlainDifferencing heap;
    for (const std::size_t index : order) {
      Partition partition(k, Set{0, 0, {}});
      partition[0] = {lengths[index], 1, {index}};
      heap.push(partition);
    }
    while (heap.heap_.size() > 1) {
      Partition a = heap.pop();
      const Partition b = heap.pop();
      for (std::size_t at = 0; at < k; ++at) {
        auto& [sum, count, items] = a[at];
        const auto& [more, others, theirs] = b[k - 1 - at];
        sum += more, count += others;
        items.insert(items.end(), theirs.begin(), theirs.end());
      }
      std::ranges::stable_sort(a, [](const Set& x, const Set& y) { return y < x; });
      heap.push(a);
    }
    Groups groups;
    for (const Set& set : heap.heap_.at(0)) groups.push_back(std::get<2>(set));
    return groups;
  }

 private:
  static std::int64_t spread(const Partition& p) { return std::get<0>(p.front()) - std::get<0>(p.back()); }
  static bool before(const Partition& a, const Partition& b) {
    return spread(a) != spread(b) ? spread(a) > spread(b) : b.front() < a.front();
  }
  void down(std::size_t start, std::size_t at) {
    Partition fresh = heap_[at];
    for (; at > start; at = (at - 1) / 2) {
      if (!before(fresh, heap_[(at - 1) / 2])) break;
      heap_[at] = heap_[(at - 1) / 2];
    }
    heap_[at] = fresh;
  }
  void push(const Partition& partition) {
    heap_.push_back(partition);
    down(0, heap_.size() - 1);
  }
  Partition pop() {
    Partition last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return last;
    const Partition top = heap_[0];
    std::size_t at = 0;
    for (std::size_t child = 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && !before(heap_[child], heap_[child + 1])) ++child;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = last;
    down(0, at);
    return top;
  }

  std::vector<Partition> heap_;
};

TEST(Differencing, IsThePlainMethod) {
  Rng rng(4);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t count = draw_between(rng, 1, 40);
    const auto lengths = draw_lengths(rng, static_cast<std::size_t>(count), round % 2 == 0 ? 4 : 900);
    const auto k = static_cast<std::size_t>(draw_between(rng, 1, 9));
    EXPECT_EQ(differencing_partition(lengths, k).value(), PlainDifferencing::run(lengths, k)) << round;
  }
}

TEST(Differencing, KnownPartitions) {
  const std::vector<std::int64_t> four = {1, 2, 3, 4};
  EXPECT_EQ(group_sums(four, differencing_partition(four, 2).value()), (std::vector<std::int64_t>{5, 5}));
  // What the code of the reference gives, not what its documentation says ([[2, 0], [4, 1, 3]]).
  const std::vector<std::int64_t> five = {100, 200, 300, 150, 250};
  EXPECT_EQ(differencing_pack(five, {500, 2, 1}).value().groups, (Groups{{0, 4, 3}, {2, 1}}));
  const std::vector<std::int64_t> tens(10, 100);
  EXPECT_EQ(differencing_pack(tens, {120, 1, 8}).value().groups.size(), 10U);
  const std::vector<std::int64_t> large = {280, 280, 280, 160};
  const auto packed = differencing_pack(large, {400, 2, 1}).value();
  EXPECT_TRUE(packed.by_first_fit);
  EXPECT_LE(packing_metrics(large, packed.groups, 400).max_load, 400);
}

TEST(Differencing, EqualSizes) {
  Rng rng(5);
  const auto lengths = draw_lengths(rng, 12, 100);
  const auto groups = differencing_partition(lengths, 4, GroupSizes::kEqual).value();
  expect_cover(groups, 12);
  for (const auto& group : groups) EXPECT_EQ(group.size(), 3U);
  EXPECT_FALSE(differencing_partition(lengths, 5, GroupSizes::kEqual));
}

TEST(Differencing, ManyLengthsAreEven) {
  Rng rng(6);
  const auto lengths = draw_lengths(rng, 5'000, 4096);
  const auto groups = differencing_partition(lengths, 64).value();
  expect_cover(groups, lengths.size());
  EXPECT_LT(packing_metrics(lengths, groups, 1).imbalance_ratio, 1e-3);
}

TEST(Greedy, SizesAndTies) {
  const std::vector<std::int64_t> values = {1000, 900, 800, 700, 100, 200, 300, 400};
  EXPECT_EQ(balanced_greedy(values, 2, Seats::kEqual).value(), (Groups{{0, 3, 7, 4}, {1, 2, 6, 5}}));
  EXPECT_FALSE(balanced_greedy(values, 3, Seats::kEqual));
  EXPECT_FALSE(balanced_greedy(values, 9, Seats::kRagged));
  EXPECT_FALSE(balanced_greedy(values, 0, Seats::kRagged));
  const auto ragged = balanced_greedy(values, 3, Seats::kRagged).value();
  expect_cover(ragged, 8);
  EXPECT_EQ(ragged[0].size(), 3U);
  EXPECT_EQ(ragged[1].size(), 3U);
  EXPECT_EQ(ragged[2].size(), 2U);
}

// The rule word by word: all groups are looked at for each value.
Groups plain_greedy(const std::vector<std::int64_t>& values, std::size_t k) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  Groups groups(k);
  std::vector<std::int64_t> sums(k, 0);
  for (const std::size_t index : order) {
    std::optional<std::size_t> emptiest;
    for (std::size_t group = 0; group < k; ++group) {
      const std::size_t seats = values.size() / k + (group < values.size() % k ? 1 : 0);
      if (groups[group].size() == seats) continue;
      if (!emptiest || sums[group] < sums[*emptiest]) emptiest = group;
    }
    groups[*emptiest].push_back(index);
    sums[*emptiest] += values[index];
  }
  return groups;
}

TEST(Greedy, AlwaysTheEmptiestGroupWithASeat) {
  Rng rng(7);
  for (int round = 0; round < 100; ++round) {
    const auto k = static_cast<std::size_t>(draw_between(rng, 1, 8));
    const auto more = static_cast<std::size_t>(draw_between(rng, 0, round % 2 == 0 ? 0 : 7));
    const std::int64_t seats = draw_between(rng, 1, 10);
    const auto values = draw_lengths(rng, k * static_cast<std::size_t>(seats) + more, 50);
    const Seats how = values.size() % k == 0 ? Seats::kEqual : Seats::kRagged;
    const auto groups = balanced_greedy(values, k, how).value();
    expect_cover(groups, values.size());
    EXPECT_EQ(groups, plain_greedy(values, k));
  }
}

// All ways to cut.
std::int64_t best_difference(const std::vector<std::int64_t>& values, std::size_t k, std::size_t min_size) {
  const std::size_t n = values.size();
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t cuts = 0; cuts < (1U << (n - 1)); ++cuts) {
    if (static_cast<std::size_t>(__builtin_popcount(cuts)) != k - 1) continue;
    std::int64_t sum = 0, least = std::numeric_limits<std::int64_t>::max(), greatest = 0;
    std::size_t size = 0;
    bool is_allowed = true;
    for (std::size_t at = 0; at < n; ++at) {
      sum += values[at], ++size;
      if (at + 1 < n && (cuts >> at & 1U) == 0) continue;
      is_allowed = is_allowed && size >= min_size;
      least = std::min(least, sum), greatest = std::max(greatest, sum);
      sum = 0, size = 0;
    }
    if (is_allowed) best = std::min(best, greatest - least);
  }
  return best;
}

TEST(ContiguousPartition, DiffersAsLittleAsAnyCut) {
  Rng rng(8);
  for (int round = 0; round < 150; ++round) {
    const std::int64_t count = draw_between(rng, 4, 11);
    const auto values = draw_lengths(rng, static_cast<std::size_t>(count), 30);
    const auto min_size = static_cast<std::size_t>(draw_between(rng, 1, 2));
    const auto k = static_cast<std::size_t>(draw_between(rng, 1, static_cast<std::int64_t>(values.size() / min_size)));
    const auto runs = contiguous_partition(values, k, min_size).value();
    ASSERT_EQ(runs.size(), k);
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), greatest = 0;
    std::size_t place = 0;
    for (const auto& [begin, end] : runs) {
      EXPECT_EQ(begin, place);
      EXPECT_GE(end - begin, min_size);
      std::int64_t sum = 0;
      for (; place < end; ++place) sum += values[place];
      least = std::min(least, sum), greatest = std::max(greatest, sum);
    }
    EXPECT_EQ(place, values.size());
    EXPECT_EQ(greatest - least, best_difference(values, k, min_size));
  }
  const std::vector<std::int64_t> two = {1, 2};
  EXPECT_FALSE(contiguous_partition(two, 3));
  EXPECT_FALSE(contiguous_partition(two, 2, 2));
}

TEST(PackingMetrics, KnownNumbers) {
  const std::vector<std::int64_t> lengths = {100, 900};
  const auto metrics = packing_metrics(lengths, {{0}, {1}}, 1000);
  EXPECT_EQ(metrics.spread, 800);
  EXPECT_DOUBLE_EQ(metrics.imbalance_ratio, 1.6);
  EXPECT_EQ(metrics.wasted, 1000);
  EXPECT_EQ(packing_metrics({}, {}, 10).utilization, 0);
}

}  // namespace
}  // namespace areal::algo
