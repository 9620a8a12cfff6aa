#include "engine/algo/loss_kernel.h"

#include "engine/algo/loss_kernel_body.h"

namespace areal::algo {

const LossKernels& portable_loss_kernels() { return kKernels; }

#ifndef AREAL_X86_KERNELS
const LossKernels* avx2_loss_kernels() { return nullptr; }
#else
const LossKernels* compiled_avx2_loss_kernels();

const LossKernels* avx2_loss_kernels() {
  return __builtin_cpu_supports("avx2") != 0 ? compiled_avx2_loss_kernels() : nullptr;
}
#endif

const LossKernels& loss_kernels() {
  static const LossKernels& fastest = avx2_loss_kernels() != nullptr ? *avx2_loss_kernels() : portable_loss_kernels();
  return fastest;
}

}  // namespace areal::algo
