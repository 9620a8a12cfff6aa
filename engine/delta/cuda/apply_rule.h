// Whether a tensor's changes are applied one by one or as a whole copy: by the bytes that device memory moves.
//
//   sparse: k (index + value) read, and 64 for every sector of 32 bytes that is touched (filled, then written back)
//   dense:  2 n read and 2 n written
//
// n elements of bf16 with k changes touch n / 16 (1 - (1 - k/n)^16) sectors if changes are spread evenly, and never
// more than k or n / 16. Sparse wins ties: it needs no second copy of the weights. Pure functions.
#pragma once
#include <algorithm>
#include <cstdint>

namespace areal::delta::cuda {

enum class ApplyForm : std::uint8_t { kSparse, kDense };

inline constexpr double kSectorElements = 16;  // bf16 in the 32 bytes that the L2 cache fills and writes back.

// REQUIRES: changed <= elements.
constexpr double touched_sectors(std::uint64_t elements, std::uint64_t changed) {
  if (elements == 0) return 0.0;
  const double kept = 1.0 - static_cast<double>(changed) / static_cast<double>(elements);
  const double kept2 = kept * kept;
  const double kept8 = kept2 * kept2 * kept2 * kept2;
  const double spread = static_cast<double>(elements) / kSectorElements * (1.0 - kept8 * kept8);
  return std::min(spread, static_cast<double>(changed));
}

constexpr double sparse_apply_bytes(std::uint64_t elements, std::uint64_t changed, std::uint32_t index_bytes) {
  return static_cast<double>(changed) * (index_bytes + 2) + 64.0 * touched_sectors(elements, changed);
}
constexpr double dense_apply_bytes(std::uint64_t elements) { return 4.0 * static_cast<double>(elements); }

constexpr ApplyForm apply_form(std::uint64_t elements, std::uint64_t changed, std::uint32_t index_bytes) {
  const bool is_cheaper = dense_apply_bytes(elements) < sparse_apply_bytes(elements, changed, index_bytes);
  return is_cheaper ? ApplyForm::kDense : ApplyForm::kSparse;
}

}  // namespace areal::delta::cuda
