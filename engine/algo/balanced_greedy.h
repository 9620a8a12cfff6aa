// Groups of nearly equal sums and fixed sizes: each value, the greatest first, goes to the emptiest group with a seat.
//
// Equal values keep the order of their indices; of equally empty groups the first is taken. n values and k groups have
// n / k seats each; the first n % k groups have one more. Source: spec 2.9. Values may be negative.
#pragma once
#include "engine/algo/packing.h"

namespace areal::algo {

enum class Seats : std::uint8_t { kEqual, kRagged };  // kEqual refuses a number of values that k does not divide.

// kInvalid: k is 0, fewer values than groups, kEqual with a remainder, a sum beyond 64 bits.
Result<Groups> balanced_greedy(std::span<const std::int64_t> values, std::size_t k, Seats seats);

// Batches of at most `per_batch` sequences each, the one with the most tokens first; the last to be filled may have
// fewer. `max_difference` is that of their sums.
struct BalancedBatches {
  Groups batches;
  std::int64_t max_difference = 0;
};
// kInvalid: per_batch is 0, a sum beyond 64 bits.
Result<BalancedBatches> balanced_batches(Lengths lengths, std::size_t per_batch);

}  // namespace areal::algo
