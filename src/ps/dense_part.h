#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "satrap/kernels/dense_update.h"

namespace satrap::ps {

/// A shard's range of the dense parameters of an async job, with its optimizer: parameters, and
/// two values of state for each. Each worker has its own part of the range.
class DensePart {
 public:
  /// `values`: parameters, first, second, [size] each.
  DensePart(const DenseOptimizer& optimizer,
            double num_updates,
            std::span<const float> values,
            std::int64_t num_workers);

  std::int64_t size() const { return size_; }
  /// Number of floats in an answer.
  std::int64_t num_values(bool with_state) const { return with_state ? 3 * size_ : size_; }

  // ---- of worker `worker`, on its thread
  void read(std::int64_t worker, bool with_state, float* out) const;  // [num_values] out
  void update(std::int64_t worker, const float* gradient, float scale, double lr);
  double num_updates(std::int64_t worker) const {
    return num_updates_[static_cast<std::size_t>(worker)];
  }

 private:
  std::int64_t begin_of(std::int64_t worker) const {
    return worker * size_ / static_cast<std::int64_t>(num_updates_.size());
  }

  const DenseOptimizer optimizer_;
  const std::int64_t size_;
  std::vector<float> values_;        // [3, size]
  std::vector<double> num_updates_;  // [num_workers]
};

}  // namespace satrap::ps
