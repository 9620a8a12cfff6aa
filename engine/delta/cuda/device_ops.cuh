// Instructions that CUDA C++ has no words for: approximate roots and reciprocals, pairs of bf16.
//
// Device only. Semantics are those of the PTX manual's instructions of the same names.
#pragma once
#include <cstdint>

namespace areal::delta::cuda {

inline constexpr unsigned kWholeWarp = 0xFFFFFFFFU;
inline constexpr std::uint32_t kLanes = 32;

__device__ inline void add_to(std::uint64_t* sum, std::uint64_t part) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), part);
}

// Relative errors of at most 2^-22; numbers below 2^-126 count as 0 (PTX manual: sqrt.approx, rcp.approx).
struct FastApproximate {
  [[nodiscard]] __device__ static float root(float x) {
    float result = 0;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
  }
  [[nodiscard]] __device__ static float reciprocal(float x) {
    float result = 0;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
  }
  [[nodiscard]] __device__ static float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
};

// bf16 of two floats, the first in the lower half; a NaN becomes kPairNan, where to_bf16() has kCanonicalNan.
inline constexpr std::uint32_t kPairNan = 0x7FFF;
__device__ inline std::uint32_t bf16_pair(float low, float high) {
  std::uint32_t pair = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

}  // namespace areal::delta::cuda
