// Change bits packed into bytes, and the change bits of a step that is known exactly.
//
// Element i is bit i % 8 of byte i / 8, little-endian; bits after the last element are written as 0 and never read
// (spec/transfer.md 1.15). Pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"

namespace areal::delta {

// Bytes that `elements` bits take.
constexpr std::uint64_t bitset_bytes(std::uint64_t elements) { return elements / 8 + (elements % 8 == 0 ? 0 : 1); }

// One byte a mask element, anything but 0 sets the bit.
std::vector<std::uint8_t> pack_mask(std::span<const std::uint8_t> mask);

// One byte an element, 0 or 1. Refuses a negative number of elements and fewer bytes than they take.
Result<std::vector<std::uint8_t>> unpack_mask(std::span<const std::uint8_t> bytes, std::int64_t elements);

// Ascending positions of bits that are set. Refuses what unpack_mask refuses.
Result<std::vector<std::int64_t>> set_bits(std::span<const std::uint8_t> bytes, std::int64_t elements);

// How an optimizer step ended.
struct StepOutcome {
  bool updated = false;   // False: the step was skipped, weights are what they were.
  std::int64_t step = 0;  // Of these weights, counted from 1.
};

// Set where the bf16 rounding of an fp32 weight is not what it was before the step; a skipped step clears all, whatever
// the weights. Refuses an updated step that is not positive and spans of different lengths.
Result<std::vector<std::uint8_t>> oracle_bitset(std::span<const float> before, std::span<const float> after,
                                                const StepOutcome& outcome);

}  // namespace areal::delta
