// How a list of whole numbers becomes bits: a code a list, chosen by what the list takes in each.
//
// A number is split into `zeros`, written in unary (so many 0 bits, then a 1), and `low`, written in `width` bits.
// Unary parts of a list stand together, low parts too: where a part begins follows from counting bits, so that many
// threads can read one list. k is the code's parameter:
//   packed      no unary part, width k
//   Rice        zeros = v >> k, width k; near the entropy for gaps between evenly spread indices
//   exp-Golomb  u = (v >> k) + 1, zeros = bits of u - 1, width k + zeros; for a few numbers that are much larger
// Source: Golomb 1966, Rice 1979, Teuhola 1978. Pure functions, for hosts and devices.
#pragma once
#include <cstdint>

#include "engine/delta/host_device.h"

namespace areal::delta::wire {

enum class Rule : std::uint8_t { kPacked, kRice, kExpGolomb };

struct StreamCode {
  Rule rule = Rule::kPacked;
  std::uint32_t k = 0;
};

struct SplitNumber {
  std::uint64_t zeros = 0;
  std::uint32_t width = 0;
  std::uint64_t low = 0;
};

AREAL_HOST_DEVICE constexpr std::uint32_t bit_length(std::uint64_t v) {
#ifdef __CUDA_ARCH__
  return 64U - static_cast<std::uint32_t>(__clzll(static_cast<long long>(v)));
#else
  return v == 0 ? 0 : 64U - static_cast<std::uint32_t>(__builtin_clzll(v));
#endif
}

// The lowest `width` bits. REQUIRES: width < 64.
AREAL_HOST_DEVICE constexpr std::uint64_t low_mask(std::uint32_t width) { return (std::uint64_t{1} << width) - 1; }

// REQUIRES: v < 2^63, k < 64; k < 63 for exp-Golomb.
AREAL_HOST_DEVICE constexpr std::uint64_t zeros_of(StreamCode code, std::uint64_t v) {
  if (code.rule == Rule::kPacked) return 0;
  if (code.rule == Rule::kRice) return v >> code.k;
  return bit_length((v >> code.k) + 1) - 1;
}

AREAL_HOST_DEVICE constexpr SplitNumber split_number(StreamCode code, std::uint64_t v) {
  const std::uint64_t zeros = zeros_of(code, v);
  if (code.rule == Rule::kPacked) return {0, code.k, v};
  if (code.rule == Rule::kRice) return {zeros, code.k, v & low_mask(code.k)};
  const auto width = code.k + static_cast<std::uint32_t>(zeros);
  return {zeros, width, v - (low_mask(static_cast<std::uint32_t>(zeros)) << code.k)};
}

AREAL_HOST_DEVICE constexpr std::uint32_t low_width(StreamCode code, std::uint32_t zeros) {
  return code.rule == Rule::kExpGolomb ? code.k + zeros : code.k;
}

// Whether a number that begins with `zeros` is below 2^63.
AREAL_HOST_DEVICE constexpr bool is_joinable(StreamCode code, std::uint32_t zeros) {
  if (code.rule == Rule::kPacked) return zeros == 0;
  if (code.rule == Rule::kRice) return bit_length(zeros) + code.k <= 63;
  return zeros + code.k <= 62;
}

// REQUIRES: is_joinable(code, zeros), and low has no more bits than low_width().
AREAL_HOST_DEVICE constexpr std::uint64_t join_number(StreamCode code, std::uint32_t zeros, std::uint64_t low) {
  if (code.rule == Rule::kPacked) return low;
  if (code.rule == Rule::kRice) return (std::uint64_t{zeros} << code.k) | low;
  return (low_mask(zeros) << code.k) + low;
}

// What of a list decides which codes are worth trying.
struct StreamSums {
  std::uint64_t count = 0;
  std::uint64_t total = 0;    // Below 2^63.
  std::uint64_t lengths = 0;  // Of their bits.
  std::uint64_t most = 0;
};

// Candidates in the order in which the first of equally short ones is taken: packed, three of Rice around the bits of
// the mean, four of exp-Golomb around the mean number of bits. Those that make no sense are packed again.
inline constexpr std::uint32_t kCandidates = 8;

AREAL_HOST_DEVICE constexpr StreamCode candidate_code(const StreamSums& sums, std::uint32_t number) {
  const StreamCode packed{Rule::kPacked, bit_length(sums.most)};
  if (number == 0 || sums.count == 0) return packed;
  const std::uint32_t mean = bit_length(sums.total / sums.count);
  const auto length = static_cast<std::uint32_t>(sums.lengths / sums.count);
  const bool is_rice = number <= 3;
  const std::uint32_t top = is_rice ? mean + 1 : length + 5;
  if (top < number) return packed;
  const std::uint32_t k = top - number;
  if (k > 62) return packed;
  return {is_rice ? Rule::kRice : Rule::kExpGolomb, k};
}

// Bits that a list takes, if the numbers have so many zeros in it together.
AREAL_HOST_DEVICE constexpr std::uint64_t unary_bits(StreamCode code, std::uint64_t count, std::uint64_t zeros) {
  return code.rule == Rule::kPacked ? 0 : count + zeros;
}
AREAL_HOST_DEVICE constexpr std::uint64_t low_bits(StreamCode code, std::uint64_t count, std::uint64_t zeros) {
  return count * code.k + (code.rule == Rule::kExpGolomb ? zeros : 0);
}

}  // namespace areal::delta::wire
