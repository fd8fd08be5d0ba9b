#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <thread>

#include "satrap/collective/communicator.h"
#include "satrap/core/mutex.h"

namespace satrap::pipeline {

/// Sums the dense gradient over the ranks while the rest of it is still being computed: buckets of
/// GradientSource::kGradientBucket values, the last one first, on a thread of its own
/// ("allreduce"), several in flight. When a bucket is summed does not affect the bits (see
/// Communicator). The first bucket is not its business: RankGroup::reduce sums it, with the flag.
///
/// Each sum may take `timeout_ms`. Nobody else may use the communicator from ready_from() until
/// wait() has returned, or ever again once it has thrown.
class GradientReducer {
 public:
  GradientReducer(collective::Communicator& group, std::int64_t timeout_ms);
  ~GradientReducer();  // closes the group if it is still at work

  /// `gradient` is final from `first` on. From any thread, but one at a time. Does not block.
  void ready_from(std::span<float> gradient, std::int64_t first);

  /// Sums the remaining buckets but the first. Rethrows errors.
  void wait(std::span<float> gradient);

 private:
  void run();
  void advance(std::span<float> gradient, std::int64_t num_ready);
  bool has_work() const SATRAP_REQUIRES(mutex_) { return num_ready_ > num_summed_ && !error_; }

  collective::Communicator& group_;
  const std::int64_t timeout_ms_;
  Mutex mutex_;
  CondVar changed_;
  // The step under way; buckets are counted from the end.
  std::span<float> gradient_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t num_ready_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::int64_t num_summed_ SATRAP_GUARDED_BY(mutex_) = 0;
  bool stopped_ SATRAP_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ SATRAP_GUARDED_BY(mutex_);
  // The thread's own.
  std::deque<std::unique_ptr<collective::Communicator::Reduction>> under_way_;
  std::int64_t num_begun_ = 0, num_added_ = 0, num_finished_ = 0;
  std::thread thread_;
};

}  // namespace satrap::pipeline
