// The kernels element by element: what the others must equal.
#include "engine/delta/change_mask.h"
#include "engine/delta/cpu/kernel.h"
#include "engine/delta/inversion.h"

namespace areal::delta {
namespace {

// Stores always and counts what is marked: no branch to predict.
template <class Mark>
std::uint32_t each_element(const KernelBlock& block, const Mark& mark) {
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < block.count; ++i) {
    const std::uint16_t current = to_bf16(block.weights[i]);
    block.marked[found] = bits_from_bf16(current) | i;
    found += mark(block.weights[i], block.exp_avg[i], block.exp_avg_sq[i], current) ? 1 : 0;
  }
  return found;
}

std::uint32_t scalar_proven(const ProvenScalars& scalars, const KernelBlock& block) {
  return each_element(block, [&](float weight, float m, float v, std::uint16_t current) {
    return must_mark(proven_interval(scalars, weight, m, v), current);
  });
}

std::uint32_t scalar_margin(const MarginScalars& scalars, const KernelBlock& block) {
  const InversionScalars inversion{scalars.step_size, scalars.bc2, scalars.epsilon, scalars.decay};
  return each_element(block, [&](float weight, float m, float v, std::uint16_t current) {
    return bf16_changed(invert_adamw(inversion, weight, m, v), current, scalars.margin);
  });
}

}  // namespace

Kernels scalar_kernels() { return {&scalar_proven, &scalar_margin}; }

}  // namespace areal::delta
