// Marks functions that device compilers are given as well, and the casts between fp32 and its bits that work on both.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define AREAL_HOST_DEVICE __host__ __device__
#else
#define AREAL_HOST_DEVICE
#endif

namespace areal::delta {

AREAL_HOST_DEVICE constexpr std::uint32_t float_bits(float value) { return __builtin_bit_cast(std::uint32_t, value); }
AREAL_HOST_DEVICE constexpr float float_of_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

}  // namespace areal::delta
