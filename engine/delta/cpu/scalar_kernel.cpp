// The kernels element by element: what the others must equal.
#include "engine/delta/change_mask.h"
#include "engine/delta/cpu/kernel.h"
#include "engine/delta/inversion.h"

namespace areal::delta {
namespace {

template <class Mark>
void each_element(const KernelBlock& block, MarkedBits& bits, const Mark& mark) {
  for (std::uint64_t& word : bits.words) word = 0;
  for (std::uint32_t i = 0; i < block.count; ++i) {
    const bool is_marked = mark(block.weights[i], block.exp_avg[i], block.exp_avg_sq[i], to_bf16(block.weights[i]));
    bits.words[i / 64] |= std::uint64_t{is_marked} << (i % 64);
  }
}

void scalar_proven(const ProvenScalars& scalars, const KernelBlock& block, MarkedBits& bits) {
  each_element(block, bits, [&](float weight, float m, float v, std::uint16_t current) {
    return must_mark(proven_interval(scalars, weight, m, v), current);
  });
}

void scalar_margin(const MarginScalars& scalars, const KernelBlock& block, MarkedBits& bits) {
  const InversionScalars inversion{scalars.step_size, scalars.bc2, scalars.epsilon, scalars.decay};
  each_element(block, bits, [&](float weight, float m, float v, std::uint16_t current) {
    return bf16_changed(invert_adamw(inversion, weight, m, v), current, scalars.margin);
  });
}

}  // namespace

Kernels scalar_kernels() { return {&scalar_proven, &scalar_margin}; }

}  // namespace areal::delta
