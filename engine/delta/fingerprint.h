// A handful of numbers over the raw bytes of a tensor, equal if the tensor was not touched.
//
// The bytes are cut into min(4096, n) bins of equal width and a tail. `total` sums all bytes; `weighted` sums them with
// weights 1 .. bins by bin, and bins + 1 for the tail; `sampled` sums 16 evenly spread bytes (all, if there are fewer)
// with weights 1 .. 16; then the first and the last byte (spec/transfer.md 1.3). An empty tensor has zeros. It is a
// guard, not a proof: changes that cancel out in every sum are not seen. Pure function.
#pragma once
#include <cstdint>
#include <span>

#include "engine/base/dtype.h"
#include "engine/base/fields.h"

namespace areal::delta {

inline constexpr std::uint64_t kMaxBins = 4096;
inline constexpr std::uint64_t kMaxSamples = 16;

struct Fingerprint {
  DType dtype = DType::kBf16;
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
  std::uint64_t weighted = 0;  // Modulo 2^64.
  std::uint64_t sampled = 0;
  std::uint8_t first = 0;
  std::uint8_t last = 0;
  constexpr bool operator==(const Fingerprint&) const = default;
  AREAL_FIELDS(dtype, bytes, total, weighted, sampled, first, last)
};

// `bytes` are little-endian elements of `dtype` in order.
Fingerprint fingerprint_of(std::span<const std::uint8_t> bytes, DType dtype);

}  // namespace areal::delta
