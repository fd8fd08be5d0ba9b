#pragma once

#include <functional>
#include <memory>
#include <string>

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

/// Sets how many bytes the L2 fetches from memory at least, as a hint to the device, until the end
/// of its life; 0 leaves the device's own setting. Throws Error(kUnavailable) without CUDA.
class FetchGranularity {
 public:
  explicit FetchGranularity(std::int64_t bytes);
  ~FetchGranularity();
  FetchGranularity(const FetchGranularity&) = delete;
  FetchGranularity& operator=(const FetchGranularity&) = delete;

 private:
  std::size_t before_ = 0;  // 0: unchanged
};

}  // namespace satrap::bench
