#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "satrap/backend/device.h"

/// What the benchmarks need of CUDA beyond backend::Device: cuda_hooks.cpp, or no_cuda_hooks.cpp in
/// a build without CUDA.
namespace satrap::bench {

/// False without CUDA and on the executor: what events say there is no measurement.
bool times_are_of_a_gpu();

/// Work that has been captured from a stream.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch(backend::StreamRef stream) = 0;
};

/// The work that `queue` queues on `stream`, which must not be the default one, as a graph. Throws
/// Error(kUnavailable) without CUDA.
std::unique_ptr<Graph> capture(backend::StreamRef stream, const std::function<void()>& queue);

/// A setting of the device, which the end of its life undoes.
class Setting {
 public:
  virtual ~Setting() = default;
};

/// How many bytes the L2 fetches from memory at least: a hint to the device. Throws
/// Error(kUnavailable) without CUDA.
std::unique_ptr<Setting> set_fetch_granularity(std::int64_t bytes);

}  // namespace satrap::bench
