#pragma once

#include <cstdint>
#include <memory>

/// What the benchmarks need of CUDA beyond backend::Device: cuda_hooks.cpp, or no_cuda_hooks.cpp in
/// a build without CUDA.
namespace satrap::bench {

/// False without CUDA and on the executor: what events say there is no measurement.
bool times_are_of_a_gpu();

/// A setting of the device, which the end of its life undoes.
class Setting {
 public:
  virtual ~Setting() = default;
};

/// How many bytes the L2 fetches from memory at least: a hint to the device. Throws
/// Error(kUnavailable) without CUDA.
std::unique_ptr<Setting> set_fetch_granularity(std::int64_t bytes);

}  // namespace satrap::bench
