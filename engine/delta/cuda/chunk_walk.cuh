// How a launch walks over chunks of many tensors, or over entries of many lists.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "engine/delta/cuda/chunks.h"
#include "engine/delta/cuda/device_ops.cuh"

namespace areal::delta::cuda {

// The last of `count` numbers, ascending, that is at most `wanted`. All lanes of a warp ask for the same; each step
// looks at 32 of them. REQUIRES: count > 0, and the first is at most `wanted`.
template <class NumberAt>
__device__ std::uint32_t last_at_most(std::uint64_t wanted, std::uint32_t count, const NumberAt& number_at) {
  const std::uint32_t lane = threadIdx.x % kLanes;
  std::uint32_t low = 0;
  while (count > 1) {
    const std::uint32_t step = (count + kLanes - 1) / kLanes;
    const std::uint32_t mine = lane * step;
    const bool fits = mine < count && number_at(low + mine) <= wanted;
    const auto fitting = static_cast<std::uint32_t>(__popc(__ballot_sync(kWholeWarp, fits)));
    low += (fitting - 1) * step;
    count = min(step, count - (fitting - 1) * step);
  }
  return low;
}

// Calls act(entry, its number, first element, elements) for each chunk; a whole block shares each call.
template <class Entry, class Act>
__device__ void for_chunks(const Entry* entries, std::uint32_t count, std::uint64_t chunks, const Act& act) {
  for (std::uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const std::uint32_t which =
        last_at_most(chunk, count, [&](std::uint32_t i) -> std::uint64_t { return entries[i].first_chunk; });
    const Entry entry = entries[which];
    const std::uint64_t first = (chunk - entry.first_chunk) * kChunkElements;
    const std::uint64_t rest = entry.elements - first;
    act(entry, which, first, static_cast<std::uint32_t>(rest < kChunkElements ? rest : kChunkElements));
  }
}

// Calls act(number, unit) for a part of the units of 16 bytes that a block of kThreads shares; four loads are in flight
// before the first is used.
template <std::uint32_t kThreads, class Act>
__device__ void for_units(const uint4* units, std::uint32_t count, const Act& act) {
  constexpr std::uint32_t kAtOnce = 4;
  for (std::uint32_t i = threadIdx.x; i < count; i += kAtOnce * kThreads) {
    uint4 loaded[kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      if (i + k * kThreads < count) loaded[k] = __ldcs(units + i + k * kThreads);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      if (i + k * kThreads < count) act(i + k * kThreads, loaded[k]);
    }
  }
}

// Sum over a block of at most 1,024 threads; thread 0 has the result. All threads call it.
template <class Number>
__device__ Number block_sum(Number mine) {
  __shared__ Number warps[kLanes];
#pragma unroll
  for (std::uint32_t step = kLanes / 2; step > 0; step /= 2) mine += __shfl_xor_sync(kWholeWarp, mine, step);
  __syncthreads();  // The sum before has been read.
  if (threadIdx.x % kLanes == 0) warps[threadIdx.x / kLanes] = mine;
  __syncthreads();
  if (threadIdx.x >= kLanes) return mine;
  mine = threadIdx.x < (blockDim.x + kLanes - 1) / kLanes ? warps[threadIdx.x] : Number{0};
#pragma unroll
  for (std::uint32_t step = kLanes / 2; step > 0; step /= 2) mine += __shfl_xor_sync(kWholeWarp, mine, step);
  return mine;
}

// As many blocks as have work, and at most `most` for each multiprocessor.
inline std::uint32_t blocks_for(std::uint64_t work, std::uint64_t of_a_block, std::uint32_t most = 8) {
  int device = 0;
  int processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const std::uint64_t wanted = work / of_a_block + 1;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(wanted, std::uint64_t{most} * static_cast<std::uint32_t>(processors)));
}

}  // namespace areal::delta::cuda
