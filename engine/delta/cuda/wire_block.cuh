// How a block of threads shares one coded block: who has which change, sums and scans in their order, bits in shared
// memory.
//
// 128 threads; each warp has 256 changes that follow each other, in 8 rows of 32: change i of a coded block belongs to
// warp i / 256, row i / 32 % 8, lane i % 32. All threads call these functions.
#pragma once
#include <cstdint>

#include "engine/delta/cuda/chunk_walk.cuh"
#include "engine/delta/cuda/device_ops.cuh"
#include "engine/delta/cuda/wire_reasons.h"
#include "engine/delta/wire/format.h"

namespace areal::delta::cuda {

inline constexpr std::uint32_t kWireThreads = 128;
inline constexpr std::uint32_t kWireWarps = kWireThreads / kLanes;
inline constexpr std::uint32_t kWireRows = wire::kBlockChanges / kWireThreads;
inline constexpr std::uint32_t kWarpChanges = kWireRows * kLanes;
static_assert(kWireWarps * kWarpChanges == wire::kBlockChanges);

__device__ inline std::uint32_t change_of(std::uint32_t row) {
  return threadIdx.x / kLanes * kWarpChanges + row * kLanes + threadIdx.x % kLanes;
}

__device__ inline void report(std::uint64_t* worst, std::uint64_t block, WireReason reason) {
  atomicMin(reinterpret_cast<unsigned long long*>(worst), wire_report(block, reason));
}

struct Plus {
  template <class Number>
  __device__ Number operator()(Number a, Number b) const {
    return a + b;
  }
};
struct Either {
  __device__ std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a | b; }
};
// Sums that stop at 2^62, whatever is added: as good as unbounded ones for telling what is beyond a tensor.
struct PlusUpTo {
  static constexpr std::uint64_t kMost = 1ULL << 62;
  __device__ std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return a + b < kMost ? a + b : kMost;  // Both are at most kMost.
  }
};

// What all threads' numbers come to, in all threads.
template <class Combine, class Number>
__device__ Number combine_all(Number mine, const Combine& combine) {
  __shared__ Number warps[kWireWarps];
#pragma unroll
  for (std::uint32_t step = kLanes / 2; step > 0; step /= 2) {
    mine = combine(mine, __shfl_xor_sync(kWholeWarp, mine, step));
  }
  __syncthreads();  // What was combined before has been read.
  if (threadIdx.x % kLanes == 0) warps[threadIdx.x / kLanes] = mine;
  __syncthreads();
  Number all = warps[0];
#pragma unroll
  for (std::uint32_t warp = 1; warp < kWireWarps; ++warp) all = combine(all, warps[warp]);
  return all;
}

// One number a thread, in the order of threads: each becomes the sum of those before it. Returns the sum of all.
__device__ inline std::uint32_t scan_threads(std::uint32_t& mine) {
  __shared__ std::uint32_t warps[kWireWarps];
  const std::uint32_t lane = threadIdx.x % kLanes;
  std::uint32_t sum = mine;
#pragma unroll
  for (std::uint32_t step = 1; step < kLanes; step *= 2) {
    const std::uint32_t before = __shfl_up_sync(kWholeWarp, sum, step);
    if (lane >= step) sum += before;
  }
  __syncthreads();
  if (lane == kLanes - 1) warps[threadIdx.x / kLanes] = sum;
  __syncthreads();
  std::uint32_t ahead = 0;
  std::uint32_t all = 0;
#pragma unroll
  for (std::uint32_t warp = 0; warp < kWireWarps; ++warp) {
    if (warp < threadIdx.x / kLanes) ahead += warps[warp];
    all += warps[warp];
  }
  mine = ahead + sum - mine;
  return all;
}

// One number a change, in the order of changes: each becomes the sum up to and with it.
template <class Combine, class Number>
__device__ void scan_changes(Number (&numbers)[kWireRows], const Combine& combine) {
  __shared__ Number warps[kWireWarps];
  const std::uint32_t lane = threadIdx.x % kLanes;
  Number carried{};
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    Number sum = numbers[row];
#pragma unroll
    for (std::uint32_t step = 1; step < kLanes; step *= 2) {
      const Number before = __shfl_up_sync(kWholeWarp, sum, step);
      if (lane >= step) sum = combine(sum, before);
    }
    numbers[row] = combine(sum, carried);
    carried = __shfl_sync(kWholeWarp, numbers[row], kLanes - 1);
  }
  __syncthreads();
  if (lane == 0) warps[threadIdx.x / kLanes] = carried;
  __syncthreads();
  Number ahead{};
#pragma unroll
  for (std::uint32_t warp = 0; warp + 1 < kWireWarps; ++warp) {
    if (warp < threadIdx.x / kLanes) ahead = combine(ahead, warps[warp]);
  }
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) numbers[row] = combine(numbers[row], ahead);
}

// A coded block's 32-bit words, and room for reads of what lies behind its last bit.
struct BlockWords {
  std::uint32_t words[2 * wire::kMostBlockUnits + 4];

  // REQUIRES: width < 64, and the bits are inside.
  [[nodiscard]] __device__ std::uint64_t bits_at(std::uint32_t place, std::uint32_t width) const {
    const std::uint32_t* from = words + place / 32;
    const std::uint32_t shift = place % 32;
    std::uint64_t bits = (from[0] | (std::uint64_t{from[1]} << 32)) >> shift;
    if (shift + width > 64) bits |= std::uint64_t{from[2]} << (64 - shift);
    return bits & wire::low_mask(width);
  }
  // Many threads may put bits into one word. REQUIRES: the words were 0, width < 64, and bits has no more.
  __device__ void put_bits(std::uint32_t place, std::uint64_t bits, std::uint32_t width) {
    std::uint32_t* to = words + place / 32;
    const std::uint32_t shift = place % 32;
    const std::uint64_t lower = bits << shift;
    if (width == 0) return;
    atomicOr(to, static_cast<std::uint32_t>(lower));
    if (shift + width > 32) atomicOr(to + 1, static_cast<std::uint32_t>(lower >> 32));
    if (shift + width > 64) atomicOr(to + 2, static_cast<std::uint32_t>(bits >> (64 - shift)));
  }
};

// Which tensor a block is of, and which of its changes it has.
struct BlockOwner {
  std::uint32_t tensor = 0;
  std::uint64_t first = 0;  // Among all changes.
  std::uint32_t changes = 0;
  bool is_last = false;  // Of its tensor.
};

// `starts`: of each tensor's blocks, and behind the last one their number. REQUIRES: block < starts[tensors].
__device__ inline BlockOwner owner_of(std::uint64_t block, const std::uint64_t* starts, const std::uint64_t* offsets,
                                      std::uint32_t tensors) {
  const std::uint32_t tensor = last_at_most(block, tensors, [&](std::uint32_t t) { return starts[t]; });
  const std::uint64_t first = offsets[tensor] + (block - starts[tensor]) * wire::kBlockChanges;
  const std::uint64_t rest = offsets[tensor + 1] - first;
  return {tensor, first, static_cast<std::uint32_t>(rest < wire::kBlockChanges ? rest : wire::kBlockChanges),
          block + 1 == starts[tensor + 1]};
}

// What stands in a workspace behind the starts of the tensors' blocks.
struct WireSums {
  std::uint64_t worst = 0;
  std::uint64_t blocks = 0;  // None if there is nothing to do for blocks.
  std::uint64_t units = 0;
  std::uint64_t content = 0;
  std::uint64_t rows = 0;  // The check's parts.
};

// How many changes and blocks there are in front of something.
struct Counted {
  std::uint64_t changes = 0;
  std::uint64_t blocks = 0;
};

// Calls act(tensor, what its tensors before have) for each tensor in order, by one warp; returns what all have.
template <class ChangesOf, class Act>
__device__ Counted number_blocks(std::uint32_t tensors, const ChangesOf& changes_of_tensor, const Act& act) {
  const std::uint32_t lane = threadIdx.x % kLanes;
  Counted ahead;
  for (std::uint32_t start = 0; start < tensors; start += kLanes) {
    const std::uint32_t tensor = start + lane;
    const std::uint64_t changes = tensor < tensors ? changes_of_tensor(tensor) : 0;
    Counted sum{changes, wire::blocks_of(changes)};
    const Counted own = sum;
#pragma unroll
    for (std::uint32_t step = 1; step < kLanes; step *= 2) {
      const std::uint64_t more_changes = __shfl_up_sync(kWholeWarp, sum.changes, step);
      const std::uint64_t more_blocks = __shfl_up_sync(kWholeWarp, sum.blocks, step);
      if (lane >= step) sum.changes += more_changes, sum.blocks += more_blocks;
    }
    if (tensor < tensors) {
      act(tensor, Counted{ahead.changes + sum.changes - own.changes, ahead.blocks + sum.blocks - own.blocks});
    }
    ahead.changes += __shfl_sync(kWholeWarp, sum.changes, kLanes - 1);
    ahead.blocks += __shfl_sync(kWholeWarp, sum.blocks, kLanes - 1);
  }
  return ahead;
}

inline std::uint32_t wire_grid(std::uint64_t blocks) { return blocks_for(blocks, 1, 16); }

}  // namespace areal::delta::cuda
