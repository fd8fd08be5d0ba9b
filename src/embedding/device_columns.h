#pragma once

#include <cstdint>

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

/// Copies the vectors of all features between the host's layout and a device's.
void copy_columns(const FeatureLayout& from_layout,
                  const float* from,
                  std::int64_t from_stride,
                  const FeatureLayout& to_layout,
                  float* to,
                  std::int64_t to_stride,
                  std::int64_t num_examples,
                  ThreadPool& pool);

}  // namespace satrap::embedding
