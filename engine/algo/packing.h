// Sequences in groups: what the packers share.
//
// A packer gets lengths in tokens and answers with groups of indices into them; each index is in exactly one group.
// Pure functions; every tie has a stated order, so that equal lengths pack equally on every machine.
// Source: the sequence packing of AReaL.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

using Lengths = std::span<const std::int64_t>;
using Groups = std::vector<std::vector<std::size_t>>;

struct PackLimits {
  std::int64_t capacity = 0;    // Tokens a group may hold.
  std::int64_t min_groups = 1;  // Less than 1 counts as 1.
  std::int64_t divisor = 1;     // The number of groups is to be a multiple of it; less than 1 counts as 1.
};

// kInvalid: the magnitudes do not add up within 64 bits, so that sums of groups or their differences might not either.
// Every packer asks first.
Status check_sums(std::span<const std::int64_t> values);

// The least number of groups: the greater of min_groups and divisor. kInvalid: a negative length, a length above the
// capacity, fewer lengths than that number, lengths that check_sums() refuses.
Result<std::size_t> least_groups(Lengths lengths, const PackLimits& limits);

std::vector<std::int64_t> group_sums(Lengths lengths, const Groups& groups);

// How even the groups are, in tokens. All zero without groups. `deviation` is that of a population; `utilization` and
// `wasted` are of the room that all groups have, which ends at the greatest 64-bit number; a ratio to a mean of 0 is 0.
// REQUIRES: lengths that check_sums() accepts.
struct PackingMetrics {
  std::vector<std::int64_t> sums;
  std::int64_t max_load = 0;
  std::int64_t min_load = 0;
  std::int64_t spread = 0;  // max_load - min_load
  std::int64_t wasted = 0;
  double mean_load = 0;
  double imbalance_ratio = 0;  // spread / mean
  double deviation = 0;
  double variation = 0;       // deviation / mean
  double max_load_ratio = 0;  // max_load / mean
  double utilization = 0;
};
PackingMetrics packing_metrics(Lengths lengths, const Groups& groups, std::int64_t capacity);

}  // namespace areal::algo
