#pragma once

#include <cuda_runtime_api.h>

#include "satrap/backend/device.h"
#include "satrap/core/error.h"

namespace satrap::backend {

/// Throws the error that a CUDA call returned, if any. CUDA then no longer remembers it: CUB and
/// libtorch would report it as theirs.
inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw Error(ErrorCode::kUnavailable,
              concat(call, ": ", cudaGetErrorName(error), " (", cudaGetErrorString(error), ")"));
}

inline cudaStream_t native(StreamRef stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace satrap::backend
