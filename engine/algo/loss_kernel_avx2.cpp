// The kernels compiled for AVX2, without fused multiplication.
#include "engine/algo/loss_kernel_body.h"

namespace areal::algo {

const LossKernels* compiled_avx2_loss_kernels();
const LossKernels* compiled_avx2_loss_kernels() { return &kKernels; }

}  // namespace areal::algo
