// What the kernels of all instruction sets have in common: their scalars, their signature, and where they are.
//
// The files with target flags include this and intrinsics only. An inline function of a common header, compiled there,
// could be what the linker keeps for everybody, and stop older machines. So this stays free of code.
#pragma once
#include <cstdint>

#include "engine/delta/proven_scalars.h"

namespace areal::delta {

// Of change_mask.h around inversion.h.
struct MarginScalars {
  float step_size = 0;
  float bc2 = 1;
  float epsilon = 0;
  float decay = 1;
  float margin = 0;
};

// Elements of one call.
inline constexpr std::uint32_t kKernelBlock = 2048;

struct KernelBlock {
  const float* weights = nullptr;
  const float* exp_avg = nullptr;
  const float* exp_avg_sq = nullptr;
  std::uint32_t count = 0;  // At most kKernelBlock; no alignment is needed.
};

// A bit for each element of a block, from the lowest of the first word on; those beyond its count are 0. Kernels write
// bits only: moving what is marked to the front in every vector costs more than all the arithmetic, because the stores
// overlap and cross cache lines.
struct MarkedBits {
  std::uint64_t words[kKernelBlock / 64];
};

using ProvenKernel = void (*)(const ProvenScalars&, const KernelBlock&, MarkedBits&);
using MarginKernel = void (*)(const MarginScalars&, const KernelBlock&, MarkedBits&);

struct Kernels {
  ProvenKernel proven = nullptr;
  MarginKernel margin = nullptr;
};

Kernels scalar_kernels();
// Only for x86-64; whether the machine has the instructions is the caller's to know.
Kernels avx2_kernels();
Kernels avx512_kernels();

}  // namespace areal::delta
