#pragma once

#include <cuda_runtime_api.h>

namespace simt {

/// Remembers an error, as CUDA does for each thread, until somebody asks for it.
cudaError_t remember(cudaError_t error);

/// Whether something may be queued on this stream: not if its capture has become invalid. The
/// caller has the turn.
cudaError_t check_queue(cudaStream_t stream);

/// Whether the calling thread may call what waits, allocates or asks, which may synchronise with
/// what is captured: it makes such a capture invalid. The caller has the turn.
cudaError_t check_unsafe();

}  // namespace simt
