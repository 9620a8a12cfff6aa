// Sums over the elements that a mask keeps.
//
// Every sum here is taken in double, in the order of the elements: the same on every machine and for every padding.
// A masked-out element is never read into a sum, so that a NaN there does not leak. Pure functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/check.h"

namespace areal::algo {

// A mask: one byte for each element, not zero where it counts.
using Mask = std::span<const std::uint8_t>;

inline std::size_t count(Mask mask) {
  std::size_t kept = 0;
  for (const std::uint8_t entry : mask) kept += entry != 0 ? 1U : 0U;
  return kept;
}

// REQUIRES: as many values as mask entries.
template <class Value>
double masked_sum(std::span<const Value> values, Mask mask) {
  AREAL_CHECK(values.size() == mask.size());
  double sum = 0;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (mask[at] != 0) sum += static_cast<double>(values[at]);
  }
  return sum;
}

// `nothing` where the mask keeps nothing.
template <class Value>
double masked_mean(std::span<const Value> values, Mask mask, double nothing = 0) {
  const std::size_t kept = count(mask);
  return kept == 0 ? nothing : masked_sum(values, mask) / static_cast<double>(kept);
}

}  // namespace areal::algo
