#pragma once

#include <cstdint>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/feature_layout.h"

namespace satrap::embedding {

/// Whether kernels, which load and store 16 bytes at a time, can work on this memory; that of a
/// std::vector is aligned.
inline bool is_aligned_for_kernels(const float* values) {
  constexpr std::uintptr_t kVectorBytes = 16;
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kVectorBytes);
  return reinterpret_cast<std::uintptr_t>(values) % kVectorBytes == 0;
}

/// The columns of a batch where the kernels of a device write and read them, for a dense network in
/// the host's memory: the network's own matrix if the device is the host and has the same columns,
/// else a copy. One batch at a time; the memory is reused, and grows with the largest batch.
class DeviceColumns {
 public:
  /// All outlive it.
  DeviceColumns(const FeatureLayout& on_host,
                const FeatureLayout& on_device,
                backend::Device& device,
                ThreadPool& pool)
      : on_host_(on_host), on_device_(on_device), device_(device), pool_(pool) {}

  /// Where kernels write the vectors of `out`, [num_examples, output_width] with `stride`.
  float* to_write(float* out, std::int64_t stride, std::int64_t num_examples);

  /// Blocks until the work of `stream` is done, and puts what it wrote into `out`.
  void finish(float* out,
              std::int64_t stride,
              std::int64_t num_examples,
              const backend::Stream& stream);

  /// The gradient [num_examples, output_width], without padding between rows, where kernels that
  /// are queued on `stream` can read it. It and the result stay until they are done.
  const float* to_read(const float* gradient,
                       std::int64_t num_examples,
                       const backend::Stream& stream);

 private:
  bool is_usable(const float* values, std::int64_t stride) const;
  std::int64_t bytes_of(std::int64_t num_examples) const;
  float* staging(std::int64_t num_examples);
  float* on_device(std::int64_t num_examples);

  const FeatureLayout &on_host_, &on_device_;
  backend::Device& device_;
  ThreadPool& pool_;
  backend::Memory staging_, memory_;  // pinned, of the device; the latter if it is not the host
};

}  // namespace satrap::embedding
