#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/dense/dense_network.h"
#include "src/dense/aligned_buffer.h"

namespace satrap::dense {

/// The gradient of a step: those of its lanes, added in the order of the lanes, in stretches of
/// DenseNetwork::kGradientStretch values. Where somebody is to be told, a stretch that every lane
/// has is added while they compute the rest, from the end to the beginning, by the lanes that come
/// by; what is left is added by finish(), everything if nobody is to be told. The same bits in
/// either case. No step allocates.
class GradientSum {
 public:
  explicit GradientSum(std::int64_t num_parameters);

  /// Starts the next step. What is borrowed must last until finish() has returned.
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
  std::int64_t num_chunks() const { return std::ssize(squares_); }
  void add_complete_stretches();
  void add_chunk(std::int64_t chunk);
  void tell_of(std::int64_t stretch);

  AlignedBuffer values_;
  std::vector<double> squares_;  // of every chunk
  struct Stretch {
    std::atomic<std::int64_t> lanes_left;   // that do not have it yet
    std::atomic<std::int64_t> chunks_left;  // not added yet
  };
  std::int64_t num_stretches_;
  std::unique_ptr<Stretch[]> stretches_;
  std::vector<const float*> lanes_;
  std::vector<std::int64_t> next_;  // of a lane: the stretch that it will have next
  const DenseNetwork::OnGradient* on_gradient_ = nullptr;
  std::atomic<std::int64_t> num_free_chunks_ = 0;  // that nobody adds yet, the first ones
  std::mutex telling_;
  std::int64_t num_untold_ = 0;  // stretches, the first ones
};

}  // namespace satrap::dense
