// A list cut into runs whose sums differ as little as they can.
//
// Of all ways to cut n values into k runs of at least min_size values, one with the least difference between the
// greatest and the least sum. Exact: for each possible least sum, from the mean downwards, the least greatest sum is
// found by dynamic programming, until no smaller least sum can do better. Costs O(k n²) for each least sum that is
// tried: meant for lists of a few hundred values (layers to stages, batches to ranks).
// Source: min_abs_diff_partition of AReaL.
#pragma once
#include <utility>

#include "engine/algo/packing.h"

namespace areal::algo {

using Run = std::pair<std::size_t, std::size_t>;  // [first, second)

// kInvalid: k or min_size is 0, a negative value, fewer values than k * min_size, a sum that does not stay below the
// greatest 64-bit number.
Result<std::vector<Run>> contiguous_partition(std::span<const std::int64_t> values, std::size_t k,
                                              std::size_t min_size = 1);

}  // namespace areal::algo
