// fp32 to bf16 and back, on bit patterns.
//
// Rounds to nearest, ties to even; beyond the largest finite value to infinity. Every NaN becomes 7fc0, so that equal
// weights have equal bits. Pure functions.
#pragma once
#include <cstdint>

#include "engine/delta/host_device.h"

namespace areal::delta {

inline constexpr std::uint16_t kCanonicalNan = 0x7FC0;

AREAL_HOST_DEVICE constexpr std::uint16_t bf16_from_bits(std::uint32_t fp32) {
  if ((fp32 & 0x7FFFFFFFU) > 0x7F800000U) return kCanonicalNan;
  const std::uint32_t last_kept = (fp32 >> 16) & 1U;
  return static_cast<std::uint16_t>((fp32 + 0x7FFFU + last_kept) >> 16);
}

AREAL_HOST_DEVICE constexpr std::uint32_t bits_from_bf16(std::uint16_t bf16) { return std::uint32_t{bf16} << 16; }

AREAL_HOST_DEVICE constexpr std::uint16_t to_bf16(float value) { return bf16_from_bits(float_bits(value)); }
AREAL_HOST_DEVICE constexpr float from_bf16(std::uint16_t bf16) { return float_of_bits(bits_from_bf16(bf16)); }

}  // namespace areal::delta
