// What the detectors read of an element, and how they decide.
//
// A kind decides rows of 32 elements, `kRows` of them with all loads on their way at once, and gives each lane's
// decisions as bits by row. Loads are single elements: 32 lanes beside each other need no alignment beyond theirs.
// The bf16 values of rows r and r + 1, the second one above, stay at pairs[r / 2 * 32] as value_of_pair() takes them;
// `pairs` has the lane's place.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "engine/delta/cuda/change_rule.h"
#include "engine/delta/cuda/device_ops.cuh"

namespace areal::delta::cuda {

inline constexpr std::uint32_t kArraysMost = 3;

struct TileTensor {
  const void* arrays[kArraysMost];
  std::uint64_t elements;
  std::uint32_t rule;
  std::uint32_t unused;
};

// Decisions of one lane: bit r is its element of row r.
struct RowBits {
  std::uint32_t changed = 0;
  std::uint32_t unsure = 0;
};

// Inverts the step: weights, first and second moments.
template <std::uint32_t kRowsAtOnce, std::uint32_t kBlockCount>
struct Inversion {
  static constexpr std::uint32_t kRows = kRowsAtOnce;
  static constexpr std::uint32_t kBlocks = kBlockCount;  // On one multiprocessor, at least.
  static constexpr bool kHasRule = true;

  // `first`: the lane's first element; `inside`: how many rows from there on have an element for it.
  static __device__ RowBits look(const TileTensor& tensor, const ChangeRule& rule, std::uint64_t first,
                                 std::uint32_t inside, std::uint32_t* pairs) {
    const float* weights = static_cast<const float*>(tensor.arrays[0]) + first;
    const float* exp_avg = static_cast<const float*>(tensor.arrays[1]) + first;
    const float* exp_avg_sq = static_cast<const float*>(tensor.arrays[2]) + first;
    float w[kRows];
    float m[kRows];
    float v[kRows];
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const bool is_inside = row < inside;
      w[row] = is_inside ? __ldcs(weights + row * kLanes) : 0.0F;
      m[row] = is_inside ? __ldcs(exp_avg + row * kLanes) : 0.0F;
      v[row] = is_inside ? __ldcs(exp_avg_sq + row * kLanes) : 0.0F;
    }
    RowBits bits;
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; row += 2) {
      const std::uint32_t pair = bf16_pair(w[row], w[row + 1]);
      pairs[row / 2 * kLanes] = pair;
      const Screened low = screen(rule, w[row], m[row], v[row], pair << 16, FastApproximate{});
      const Screened high = screen(rule, w[row + 1], m[row + 1], v[row + 1], pair & 0xFFFF0000U, FastApproximate{});
      if (low == Screened::kChanged) bits.changed |= 1U << row;
      if (low == Screened::kUnsure) bits.unsure |= 1U << row;
      if (high == Screened::kChanged) bits.changed |= 2U << row;
      if (high == Screened::kUnsure) bits.unsure |= 2U << row;
    }
    return bits;
  }

  // The rule, for an element that the screen leaves open.
  static __device__ bool decide(const TileTensor& tensor, const ChangeRule& rule, std::uint64_t index) {
    const float weight = static_cast<const float*>(tensor.arrays[0])[index];
    return rule_marks(rule, weight, static_cast<const float*>(tensor.arrays[1])[index],
                      static_cast<const float*>(tensor.arrays[2])[index], to_bf16(weight));
  }

  static __device__ std::uint16_t value(const TileTensor& tensor, std::uint64_t index) {
    return to_bf16(static_cast<const float*>(tensor.arrays[0])[index]);
  }
  static __device__ std::uint32_t value_of_pair(std::uint32_t bits) { return bits == kPairNan ? kCanonicalNan : bits; }
};

// Compares with what was sent.
template <std::uint32_t kRowsAtOnce, std::uint32_t kBlockCount>
struct Snapshot {
  static constexpr std::uint32_t kRows = kRowsAtOnce;
  static constexpr std::uint32_t kBlocks = kBlockCount;
  static constexpr bool kHasRule = false;

  static __device__ RowBits look(const TileTensor& tensor, const ChangeRule& /*rule*/, std::uint64_t first,
                                 std::uint32_t inside, std::uint32_t* pairs) {
    const std::uint16_t* weights = static_cast<const std::uint16_t*>(tensor.arrays[0]) + first;
    const std::uint16_t* sent = static_cast<const std::uint16_t*>(tensor.arrays[1]) + first;
    std::uint16_t now[kRows];
    std::uint16_t before[kRows];
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const bool is_inside = row < inside;
      now[row] = is_inside ? __ldcs(weights + row * kLanes) : std::uint16_t{0};
      before[row] = is_inside ? __ldcs(sent + row * kLanes) : std::uint16_t{0};
    }
    RowBits bits;
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; row += 2) {
      pairs[row / 2 * kLanes] = now[row] | std::uint32_t{now[row + 1]} << 16;
      if (now[row] != before[row]) bits.changed |= 1U << row;
      if (now[row + 1] != before[row + 1]) bits.changed |= 2U << row;
    }
    return bits;
  }

  static __device__ bool decide(const TileTensor& /*tensor*/, const ChangeRule& /*rule*/, std::uint64_t /*index*/) {
    return false;
  }

  static __device__ std::uint16_t value(const TileTensor& tensor, std::uint64_t index) {
    return static_cast<const std::uint16_t*>(tensor.arrays[0])[index];
  }
  static __device__ std::uint32_t value_of_pair(std::uint32_t bits) { return bits; }
};

// Bytes on their way on one multiprocessor: rows x arrays x 32 lanes x element x warps; registers bound their product.
// Half as many rows with more warps, and twice as many with fewer, were slower at all shares.
using OptimizerInversion = Inversion<8, 4>;
using SentSnapshot = Snapshot<16, 5>;

}  // namespace areal::delta::cuda
