#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "cuda/backend/check.h"
#include "satrap/backend/device.h"

namespace satrap::backend {

/// Threads per block of all kernels: four warps, small enough to spread a few rows over the device.
inline constexpr int kThreads = 128;
inline constexpr int kWarps = kThreads / 32;

/// The number of blocks of kernels on a device.
struct Grids {
  std::int64_t num_multiprocessors;

  /// Enough blocks for `items` at items_per_block each, but no more than fill the device once:
  /// kernels loop over the rest.
  unsigned grid_for(std::int64_t items, std::int64_t items_per_block) const {
    constexpr std::int64_t kBlocksPerMultiprocessor = 2048 / kThreads;
    const std::int64_t wanted = (items + items_per_block - 1) / items_per_block;
    return static_cast<unsigned>(
        std::clamp<std::int64_t>(wanted, 1, kBlocksPerMultiprocessor * num_multiprocessors));
  }
};

/// Queues kernel(arguments...) with kThreads threads per block.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...),
            unsigned grid,
            StreamRef stream,
            Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(kThreads);
  config.stream = native(stream);
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...),
        "cudaLaunchKernelEx");
}

}  // namespace satrap::backend
