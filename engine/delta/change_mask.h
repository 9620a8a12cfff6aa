// Which elements of a parameter a delta must carry, element by element.
//
// An element is sent if its published bits differ from those of the previous weight, rounded the same way. The previous
// weight comes from inverting a step, so near a rounding boundary it may round to the wrong side: such elements are
// sent as well (spec/transfer.md 1.7 steps 3 and 4). Pure functions.
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>

#include "engine/base/dtype.h"
#include "engine/delta/bf16.h"

namespace areal::delta {

// The reference's relative margin (DTE_DELTA_INVERSION_BF16_MARGIN_REL).
inline constexpr float kReferenceMargin = 1e-4F;

// The reference's parameters that are always sent whole (DTE_DELTA_INVERSION_DENSE_PARAM_SUFFIXES): routers.
inline constexpr std::string_view kReferenceDenseSuffixes = ".mlp.gate.weight";

// The next bf16 value above and below; both zeros have the same neighbours. REQUIRES: bits are of a finite value.
constexpr std::uint16_t bf16_above(std::uint16_t bits) {
  if ((bits & 0x7FFFU) == 0) return 0x0001;
  return static_cast<std::uint16_t>((bits & 0x8000U) != 0 ? bits - 1U : bits + 1U);
}
constexpr std::uint16_t bf16_below(std::uint16_t bits) {
  if ((bits & 0x7FFFU) == 0) return 0x8001;
  return static_cast<std::uint16_t>((bits & 0x8000U) != 0 ? bits + 1U : bits - 1U);
}

// Whether |old - current| is at least (1 - margin) of half the distance to the neighbour on old's side. The distances
// to both neighbours differ at powers of two. Infinities and NaN are near nothing, and nothing is near the infinity
// beyond the largest finite value.
constexpr bool near_rounding_boundary(float old_weight, std::uint16_t current_bits, float margin_rel) {
  constexpr std::uint32_t kExponent = 0x7F800000;
  if ((std::bit_cast<std::uint32_t>(old_weight) & kExponent) == kExponent) return false;
  if ((bits_from_bf16(current_bits) & kExponent) == kExponent) return false;
  const float current = from_bf16(current_bits);
  const bool is_below = old_weight < current;
  const float neighbour = from_bf16(is_below ? bf16_below(current_bits) : bf16_above(current_bits));
  const float gap = is_below ? current - neighbour : neighbour - current;
  const float distance = is_below ? current - old_weight : old_weight - current;
  return distance >= (gap * 0.5F) * (1.0F - margin_rel);
}

// For a bf16 payload: bits differ, or nearly do. A NaN equals a NaN of the same bits; +0 and -0 differ.
constexpr bool bf16_changed(float old_weight, std::uint16_t current_bits, float margin_rel) {
  return to_bf16(old_weight) != current_bits || near_rounding_boundary(old_weight, current_bits, margin_rel);
}

// For an fp32 payload: bits differ. There is no rounding, so there is no margin.
constexpr bool f32_changed(float old_weight, std::uint32_t current_bits) {
  return std::bit_cast<std::uint32_t>(old_weight) != current_bits;
}

// The dtype of flat indices into a parameter of `numel` elements: int32 as long as 2^31 - 1 is enough.
constexpr DType index_dtype(std::uint64_t numel) { return numel <= 0x7FFFFFFFU ? DType::kI32 : DType::kI64; }

// Whether a converted name ends in one of `suffixes`, a comma-separated list; blanks around a suffix do not count, and
// empty ones name nothing.
bool is_forced_dense(std::string_view name, std::string_view suffixes = kReferenceDenseSuffixes);

}  // namespace areal::delta
