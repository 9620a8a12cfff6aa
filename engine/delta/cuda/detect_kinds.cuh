// What a tile is for each detector, and how a warp looks at its part of one.
#pragma once
#include <cstdint>

#include "engine/delta/cuda/detect_block.cuh"

namespace areal::delta::cuda {

// Bits of the rows that hold an element for the lane whose first element is `first`.
template <std::uint32_t kRows>
__device__ inline std::uint32_t rows_inside(std::uint32_t first, std::uint32_t elements) {
  if (first >= elements) return 0;
  const std::uint32_t rows = (elements - first + kLanes - 1) / kLanes;
  return rows >= kRows ? static_cast<std::uint32_t>((1ULL << kRows) - 1) : (1U << rows) - 1U;
}

// Inverts the step: weights, first and second moments.
template <std::uint32_t kTileElements, std::uint32_t kSlotCount, std::uint32_t kWarpCount, std::uint32_t kBlockCount>
struct Inversion {
  using Element = float;
  static constexpr std::uint32_t kArrays = 3;
  static constexpr std::uint32_t kTile = kTileElements;
  static constexpr std::uint32_t kSlots = kSlotCount;
  static constexpr std::uint32_t kWarps = kWarpCount;
  static constexpr std::uint32_t kBlocks = kBlockCount;  // On one multiprocessor.
  static constexpr bool kHasRule = true;

  // Looks at elements first, first + 32, ...; returns the changed ones' bits by row, and all rows' bf16 values.
  template <std::uint32_t kRows>
  static __device__ std::uint32_t look(const DetectShared<Inversion>& shared, std::uint32_t slot, std::uint32_t first,
                                       std::uint32_t elements, std::uint32_t (&values)[kRows / 2]) {
    const ChangeRule& rule = shared.rules[slot];
    const float* weights = shared.array(slot, 0) + first;
    const float* exp_avg = shared.array(slot, 1) + first;
    const float* exp_avg_sq = shared.array(slot, 2) + first;
    std::uint32_t changed = 0;
    std::uint32_t unsure = 0;
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; row += 2) {
      const float low = weights[row * kLanes];
      const float high = weights[(row + 1) * kLanes];
      values[row / 2] = bf16_pair(low, high);
      const std::uint32_t current[2] = {values[row / 2] << 16, values[row / 2] & 0xFFFF0000U};
      const Screened pair[2] = {
          screen(rule, low, exp_avg[row * kLanes], exp_avg_sq[row * kLanes], current[0], FastApproximate{}),
          screen(rule, high, exp_avg[(row + 1) * kLanes], exp_avg_sq[(row + 1) * kLanes], current[1],
                 FastApproximate{})};
#pragma unroll
      for (std::uint32_t i = 0; i < 2; ++i) {
        if (pair[i] == Screened::kChanged) changed |= 1U << (row + i);
        if (pair[i] == Screened::kUnsure) unsure |= 1U << (row + i);
      }
    }
    if (elements < kTile) {
      const std::uint32_t inside = rows_inside<kRows>(first, elements);
      changed &= inside;
      unsure &= inside;
    }
    // Lanes that have different rows to evaluate do it together.
    while (__any_sync(kWholeWarp, unsure != 0)) {
      if (unsure == 0) continue;
      const std::uint32_t row = static_cast<std::uint32_t>(__ffs(static_cast<int>(unsure))) - 1;
      unsure &= unsure - 1;
      const float weight = weights[row * kLanes];
      if (rule_marks(rule, weight, exp_avg[row * kLanes], exp_avg_sq[row * kLanes], to_bf16(weight))) {
        changed |= 1U << row;
      }
    }
    return changed;
  }
};

// Compares with what was sent.
template <std::uint32_t kTileElements, std::uint32_t kSlotCount, std::uint32_t kWarpCount, std::uint32_t kBlockCount>
struct Snapshot {
  using Element = std::uint16_t;
  static constexpr std::uint32_t kArrays = 2;
  static constexpr std::uint32_t kTile = kTileElements;
  static constexpr std::uint32_t kSlots = kSlotCount;
  static constexpr std::uint32_t kWarps = kWarpCount;
  static constexpr std::uint32_t kBlocks = kBlockCount;
  static constexpr bool kHasRule = false;

  template <std::uint32_t kRows>
  static __device__ std::uint32_t look(const DetectShared<Snapshot>& shared, std::uint32_t slot, std::uint32_t first,
                                       std::uint32_t elements, std::uint32_t (&values)[kRows / 2]) {
    const std::uint16_t* weights = shared.array(slot, 0) + first;
    const std::uint16_t* sent = shared.array(slot, 1) + first;
    std::uint32_t changed = 0;
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; row += 2) {
      const std::uint32_t low = weights[row * kLanes];
      const std::uint32_t high = weights[(row + 1) * kLanes];
      values[row / 2] = low | (high << 16);
      if (low != sent[row * kLanes]) changed |= 1U << row;
      if (high != sent[(row + 1) * kLanes]) changed |= 2U << row;
    }
    return elements < kTile ? changed & rows_inside<kRows>(first, elements) : changed;
  }
};

// Multiprocessors of sm_90 have 227 KiB of shared memory for blocks; most of it holds bytes that are on their way.
using WideInversion = Inversion<4096, 4, 16, 1>;
using TwinInversion = Inversion<2048, 4, 8, 2>;
using DeepInversion = Inversion<2048, 8, 16, 1>;
using WideSnapshot = Snapshot<8192, 4, 16, 1>;
using TwinSnapshot = Snapshot<4096, 4, 8, 2>;
using DeepSnapshot = Snapshot<4096, 8, 16, 1>;

template <class Kind>
__global__ void __launch_bounds__((Kind::kWarps + 2) * kLanes, Kind::kBlocks)
    detect_kernel(const __grid_constant__ DetectArguments arguments) {
  detect_block<Kind>(arguments);
}

}  // namespace areal::delta::cuda
