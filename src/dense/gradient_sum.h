#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/dense/dense_network.h"
#include "src/dense/aligned_buffer.h"

namespace satrap::dense {

/// The gradient of a step: those of its lanes, added in the order of the lanes, in stretches of
/// DenseNetwork::kGradientStretch values. Where somebody is to be told, the last lane that has a
/// stretch adds it while others still compute, from the end to the beginning; the rest is left to
/// finish(), as is everything if nobody is. The same bits in either case. No step allocates.
class GradientSum {
 public:
  explicit GradientSum(std::int64_t num_parameters);

  /// Of the next step. What is borrowed must last until finish() has returned.
  void begin(std::span<const float* const> lanes, const DenseNetwork::OnGradient& on_gradient);

  /// Whether advance() is wanted.
  bool is_told() const { return on_gradient_ != nullptr; }

  /// By the thread of `lane`: its gradients from `first` on will not change any more.
  void advance(std::int64_t lane, std::int64_t first);

  /// After all lanes. Returns the sum of the squares of all values, added in fixed order; not
  /// finite exactly if some value is not.
  double finish(ThreadPool& pool);

  std::span<float> values() { return values_.span(); }

 private:
  void add_chunk(std::int64_t chunk);

  AlignedBuffer values_;
  std::vector<double> squares_;                          // of every chunk
  std::unique_ptr<std::atomic<std::int64_t>[]> counts_;  // of lanes that have a stretch
  std::int64_t num_stretches_;
  std::vector<const float*> lanes_;
  std::vector<std::int64_t> next_;  // of a lane: the stretch that it will have next
  const DenseNetwork::OnGradient* on_gradient_ = nullptr;
  std::int64_t num_left_ = 0;  // stretches that are not added yet, the first ones
};

}  // namespace satrap::dense
