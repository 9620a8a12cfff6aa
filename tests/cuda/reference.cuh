// What the detector must find: on the host, element by element; and on the device for sizes that a host is too slow
// for, as a count and an order-free hash of all (index, value).
#pragma once
#include <cstdint>
#include <thread>
#include <vector>

#include "engine/delta/cuda/change_rule.h"
#include "tests/cuda/device_array.h"
#include "tests/cuda/strata.h"

namespace areal::tests {

// Runs act(first, end) on parts of 0 .. count - 1, one thread each.
template <class Act>
void in_threads(std::uint64_t count, const Act& act) {
  const std::uint64_t parts = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::uint64_t part = 0; part < parts; ++part) {
    threads.emplace_back([&, part] { act(count * part / parts, count * (part + 1) / parts); });
  }
  for (std::thread& thread : threads) thread.join();
}

struct ChangeHash {
  unsigned long long count = 0;
  unsigned long long hash = 0;
  unsigned long long disordered = 0;  // Entries that do not ascend.
  bool operator==(const ChangeHash&) const = default;
};

__device__ inline void add_to(ChangeHash* sum, const ChangeHash& mine) {
  if (mine.count == 0) return;
  atomicAdd(&sum->count, mine.count);
  atomicAdd(&sum->hash, mine.hash);
  if (mine.disordered != 0) atomicAdd(&sum->disordered, mine.disordered);
}

// The rule for every element, without screen.
static __global__ void rule_hash_kernel(const float* weights, const float* exp_avg, const float* exp_avg_sq,
                                        std::uint64_t elements, const __grid_constant__ delta::cuda::ChangeRule rule,
                                        ChangeHash* sum) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  ChangeHash mine;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const std::uint16_t current = delta::to_bf16(weights[i]);
    if (!delta::cuda::rule_marks(rule, weights[i], exp_avg[i], exp_avg_sq[i], current)) continue;
    ++mine.count;
    mine.hash += mix_words(i, current);
  }
  add_to(sum, mine);
}

template <class Index>
__global__ void list_hash_kernel(const Index* indices, const std::uint16_t* values, std::uint64_t first,
                                 std::uint64_t end, ChangeHash* sum) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  ChangeHash mine;
  for (std::uint64_t i = first + std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < end; i += stride) {
    ++mine.count;
    mine.hash += mix_words(static_cast<std::uint64_t>(indices[i]), values[i]);
    if (i > first && indices[i - 1] >= indices[i]) ++mine.disordered;
  }
  add_to(sum, mine);
}

inline ChangeHash rule_hash(const float* weights, const float* exp_avg, const float* exp_avg_sq, std::uint64_t elements,
                            const delta::cuda::ChangeRule& rule) {
  DeviceArray<ChangeHash> sum(1);
  sum.fill(0);
  rule_hash_kernel<<<2048, 256>>>(weights, exp_avg, exp_avg_sq, elements, rule, sum.data());
  return sum.host()[0];
}

template <class Index>
ChangeHash list_hash(const Index* indices, const std::uint16_t* values, std::uint64_t first, std::uint64_t end) {
  DeviceArray<ChangeHash> sum(1);
  sum.fill(0);
  list_hash_kernel<Index><<<2048, 256>>>(indices, values, first, end, sum.data());
  return sum.host()[0];
}

}  // namespace areal::tests
