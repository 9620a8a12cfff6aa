// The way from one bf16 value to another, as a small number if they are near each other.
//
// Bit patterns are put in the order of their values, -0 before +0, NaNs at both ends; the step is the signed distance
// modulo 2^16. It is numbered -1, +1, -2, +2, ... = 0, 1, 2, 3, ...; no step at all, which a delta has no need of,
// comes last. Every pair of patterns has one number, and base and number give back the pattern. Pure functions.
#pragma once
#include <cstdint>

#include "engine/delta/host_device.h"

namespace areal::delta::wire {

// Signs are as good as random, so nothing branches on them. REQUIRES: all numbers are below 2^16.
AREAL_HOST_DEVICE constexpr std::uint32_t bf16_rank(std::uint32_t bits) {
  return bits ^ 0x8000U ^ ((0U - (bits >> 15)) & 0x7FFFU);
}
AREAL_HOST_DEVICE constexpr std::uint32_t bf16_of_rank(std::uint32_t rank) {
  return rank ^ 0x8000U ^ (((rank >> 15) - 1U) & 0x7FFFU);
}

AREAL_HOST_DEVICE constexpr std::uint32_t step_number(std::uint32_t base, std::uint32_t now) {
  const std::uint32_t step = (bf16_rank(now) - bf16_rank(base)) & 0xFFFFU;
  return (((step << 1) ^ (0U - (step >> 15))) - 1) & 0xFFFFU;
}
AREAL_HOST_DEVICE constexpr std::uint32_t step_from(std::uint32_t base, std::uint32_t number) {
  const std::uint32_t zigzag = (number + 1) & 0xFFFFU;
  const std::uint32_t step = (zigzag >> 1) ^ (0U - (zigzag & 1U));
  return bf16_of_rank((bf16_rank(base) + step) & 0xFFFFU);
}

}  // namespace areal::delta::wire
