#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "satrap/collective/communicator.h"

namespace satrap::pipeline {

/// Sums the dense gradient over the ranks while the rest of it is still being computed: buckets
/// of DenseNetwork::kGradientBucket values, from the end to the beginning, in a thread of its own
/// ("allreduce"), several under way at a time. What is summed when has no influence on the bits
/// (see Communicator). The first bucket is left alone: it travels with what the ranks have to say
/// at the end of a step.
///
/// Each sum may take `timeout_ms`. The communicator is this object's from ready_from() until wait()
/// has returned; for good once it has thrown.
class GradientReducer {
 public:
  GradientReducer(collective::Communicator& group, std::int64_t timeout_ms);
  ~GradientReducer();  // closes the group if it is still at work

  /// From any thread, not from two at a time: `gradient` from `first` on is final. Does not block.
  void ready_from(std::span<float> gradient, std::int64_t first);

  /// Sums what is left of the gradient but its first bucket. Rethrows errors.
  void wait(std::span<float> gradient);

 private:
  void run();
  void advance(std::span<float> gradient, std::int64_t num_ready);
  bool has_work() const { return num_ready_ > num_summed_ && !error_; }

  collective::Communicator& group_;
  const std::int64_t timeout_ms_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // The step under way; buckets are counted from the end.
  std::span<float> gradient_;
  std::int64_t num_ready_ = 0, num_summed_ = 0;
  bool stopped_ = false;
  std::exception_ptr error_;
  // The thread's own.
  std::deque<std::unique_ptr<collective::Communicator::Reduction>> under_way_;
  std::int64_t num_begun_ = 0, num_added_ = 0, num_finished_ = 0;
  std::thread thread_;
};

}  // namespace satrap::pipeline
