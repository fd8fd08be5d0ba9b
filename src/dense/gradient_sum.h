#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/core/thread_pool.h"
#include "satrap/dense/gradient_source.h"
#include "src/dense/aligned_buffer.h"

namespace satrap::dense {

/// The gradient of a step: the sum of the replicas' gradients in their order, in buckets of
/// GradientSource::kGradientBucket values. With a callback, the replicas add a bucket as soon as
/// all of them have it, the last bucket first, while they compute the rest; finish() adds what is
/// left. The bits are the same either way. No step allocates.
class GradientSum {
 public:
  explicit GradientSum(std::int64_t num_parameters);

  /// Starts the next step. Both arguments must stay valid until finish() has returned.
  void begin(std::span<const float* const> replicas, const GradientSource::OnGradient& on_gradient);

  /// Whether advance() must be called.
  bool is_told() const { return on_gradient_ != nullptr; }

  /// Called by the thread of `replica`: its gradients from `first` on are final.
  void advance(std::int64_t replica, std::int64_t first);

  /// Called after all replicas are done. Returns the sum of the squares of all values, added in
  /// fixed order; it is finite exactly if all values are.
  double finish(ThreadPool& pool);

  std::span<float> values() { return all_.span().subspan(GradientSource::kFlagFloats); }

  /// GradientSource::flag_and_first_bucket.
  std::span<float> flag_and_first_bucket();

 private:
  std::int64_t num_chunks() const { return std::ssize(squares_); }
  void add_complete_buckets();
  void add_chunk(std::int64_t chunk);
  void tell_of(std::int64_t bucket);

  AlignedBuffer all_;            // the flag, then the values
  std::vector<double> squares_;  // of every chunk
  struct Bucket {
    std::atomic<std::int64_t> replicas_left;  // that do not have it yet
    std::atomic<std::int64_t> chunks_left;    // not added yet
  };
  std::int64_t num_buckets_;
  std::unique_ptr<Bucket[]> buckets_;
  std::vector<const float*> replicas_;
  std::vector<std::int64_t> next_;  // of a replica: the next bucket that it completes
  const GradientSource::OnGradient* on_gradient_ = nullptr;
  std::atomic<std::int64_t> num_free_chunks_ = 0;  // the first ones, not taken by any thread
  Mutex telling_;
  std::int64_t num_untold_ SATRAP_GUARDED_BY(telling_) = 0;  // the first buckets
};

}  // namespace satrap::dense
