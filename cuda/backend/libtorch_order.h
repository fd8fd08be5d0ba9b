#pragma once

#include <functional>

#include "satrap/backend/views.h"

namespace satrap::backend {

/// Device::libtorch_gpu() and run_in_order() of GPU `number`: here with libtorch's CUDA kernels,
/// and on the executor, whose memory is the host's, with those for CPUs (tests/support/simt).
int libtorch_gpu(int number);
void run_in_order(StreamRef stream, std::function<void()> compute);

}  // namespace satrap::backend
