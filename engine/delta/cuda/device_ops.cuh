// The instructions of sm_90 that CUDA C++ has no words for: bulk copies into shared memory, the barriers they complete
// on, approximate roots and reciprocals, words that blocks hand each other.
//
// Device only. Semantics are those of the PTX manual's instructions of the same names.
#pragma once
#include <cstdint>

namespace areal::delta::cuda {

inline constexpr unsigned kWholeWarp = 0xFFFFFFFFU;
inline constexpr std::uint32_t kLanes = 32;

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier in shared memory whose phases end when all arrivals and all announced bytes have come.
class Barrier {
 public:
  __device__ void set_up(std::uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  __device__ void arrive() {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(address()) : "memory");
  }
  // Announces bytes that bulk copies will bring, and arrives.
  __device__ void arrive_expecting(std::uint32_t bytes) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" ::"r"(address()),
                 "r"(bytes)
                 : "memory");
  }
  // Waits until the phase of this parity has ended. Of a new barrier, the phase of parity 1 has.
  __device__ void wait(std::uint32_t parity) {
    std::uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2; selp.u32 %0, 1, 0, done; }"
          : "=r"(done)
          : "r"(address()), "r"(parity)
          : "memory");
    }
  }
  [[nodiscard]] __device__ std::uint32_t address() const { return shared_address(&word_); }

 private:
  std::uint64_t word_;
};

// Orders this thread's accesses of shared memory before the copy engine's.
__device__ inline void fence_for_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// For data that is read once: it leaves the L2 cache first.
__device__ inline std::uint64_t read_once_policy() {
  std::uint64_t policy = 0;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// REQUIRES: both addresses and `bytes` are multiples of 16, bytes > 0.
__device__ inline void copy_bulk(void* shared, const void* global, std::uint32_t bytes, const Barrier& barrier,
                                 std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(shared_address(shared)),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(barrier.address()), "l"(policy)
      : "memory");
}

// A barrier among `threads` threads of the block, a multiple of 32; `number` 1 to 15.
__device__ inline void sync_threads(std::uint32_t number, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

__device__ inline std::uint64_t load_word(const std::uint64_t* word) {
  std::uint64_t value = 0;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(__cvta_generic_to_global(word)) : "memory");
  return value;
}
__device__ inline void store_word(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "l"(value) : "memory");
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

// bf16 of two floats, the first in the lower half; a NaN becomes 7fff.
__device__ inline std::uint32_t bf16_pair(float low, float high) {
  std::uint32_t pair = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

}  // namespace areal::delta::cuda
