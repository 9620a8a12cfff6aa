// A CUDA stream, named without CUDA's headers, and errors of its runtime as Status.
#pragma once
#include "engine/base/result.h"

struct CUstream_st;

namespace areal::delta::cuda {

using Stream = CUstream_st*;  // A cudaStream_t; null is the default stream.

// The runtime's last error on this thread, which it then forgets; `what` stands in front of it. Asynchronous errors
// show at a later call.
Status last_error(const char* what);

}  // namespace areal::delta::cuda
