// Groups of nearly equal sums by the largest differencing method of Karmarkar and Karp.
//
// Each length begins as a partition of its own: k sets, one of them with the length. The two partitions of the largest
// spread (largest minus smallest sum) become one, largest set with smallest, until one is left; the sets of a partition
// are kept in descending order of (sum, number of items, items). Of equal spreads the partition with the greater first
// set comes first; what is equal still comes in the order of Python's heapq over lengths in ascending order, which the
// reference uses. Source: spec 2.9; Karmarkar and Karp, "The Differencing Method of Set Partitioning".
#pragma once
#include "engine/algo/packing.h"

namespace areal::algo {

enum class GroupSizes : std::uint8_t { kAny, kEqual };  // kEqual: as many items in each group.

// Exactly `k` groups, empty ones at the end if there are fewer lengths. kInvalid: k is 0, a negative length, a
// sum beyond 64 bits, kEqual without as many lengths as k divides.
Result<Groups> differencing_partition(Lengths lengths, std::size_t k, GroupSizes sizes = GroupSizes::kAny);

struct Packed {
  Groups groups;
  bool by_first_fit = false;  // A group of the partition was above the capacity.
};

// k is the greater of the least number of groups and what the sum needs, rounded up to the divisor, then at most the
// number of lengths: so it need not be a multiple of the divisor. A partition with a group above the capacity is
// replaced by first_fit_decreasing. kInvalid: what either refuses.
Result<Packed> differencing_pack(Lengths lengths, const PackLimits& limits, GroupSizes sizes = GroupSizes::kAny);

}  // namespace areal::algo
