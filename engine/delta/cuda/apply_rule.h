// Whether a tensor's changes are applied faster one by one or as a whole copy: by the bytes that device memory moves.
//
//   sparse: k (index + value) read, and 128 for every 64 bytes of weights that are touched: read, then written back
//   dense:  2 n read and 2 n written
//
// n elements of bf16 with k changes touch n / e (1 - (1 - k/n)^e) pieces of e elements if changes are spread evenly,
// and never more than k or n / e. Memory moves pieces of 64 bytes, which are 32 elements. Sparse wins ties: it needs no
// second copy of the weights. Pure functions.
#pragma once
#include <algorithm>
#include <cstdint>

namespace areal::delta::cuda {

enum class ApplyForm : std::uint8_t { kSparse, kDense };

inline constexpr std::uint32_t kPieceElements = 32;

// Pieces of `piece` elements that `changed` of `elements` touch. REQUIRES: changed <= elements; piece is a power of
// two.
constexpr double touched_pieces(std::uint64_t elements, std::uint64_t changed, std::uint32_t piece = kPieceElements) {
  if (elements == 0) return 0.0;
  double kept = 1.0 - static_cast<double>(changed) / static_cast<double>(elements);
  for (std::uint32_t power = 1; power < piece; power *= 2) kept *= kept;
  const double spread = static_cast<double>(elements) / piece * (1.0 - kept);
  return std::min(spread, static_cast<double>(changed));
}

constexpr double sparse_apply_bytes(std::uint64_t elements, std::uint64_t changed, std::uint32_t index_bytes) {
  return static_cast<double>(changed) * (index_bytes + 2) + 4.0 * kPieceElements * touched_pieces(elements, changed);
}
constexpr double dense_apply_bytes(std::uint64_t elements) { return 4.0 * static_cast<double>(elements); }

constexpr ApplyForm apply_form(std::uint64_t elements, std::uint64_t changed, std::uint32_t index_bytes) {
  const bool is_cheaper = dense_apply_bytes(elements) < sparse_apply_bytes(elements, changed, index_bytes);
  return is_cheaper ? ApplyForm::kDense : ApplyForm::kSparse;
}

}  // namespace areal::delta::cuda
