// Turns codes of the CUDA runtime into Status.
#include <cuda_runtime.h>

#include <string>

#include "engine/delta/cuda/stream.h"

namespace areal::delta::cuda {

Status last_error(const char* what) {
  const cudaError_t code = cudaGetLastError();
  if (code == cudaSuccess) return Unit{};
  const Errc kind = code == cudaErrorMemoryAllocation ? Errc::kNoMemory : Errc::kIo;
  return Error{kind, std::string(what) + ": " + cudaGetErrorString(code)};
}

}  // namespace areal::delta::cuda
