#include "gradient_reducer.h"

#include <algorithm>

#include "satrap/core/thread_name.h"
#include "satrap/dense/dense_network.h"

namespace satrap::trainer {
namespace {

constexpr std::int64_t kStretch = dense::DenseNetwork::kGradientStretch;

std::int64_t num_stretches(std::span<const float> gradient) {
  return (std::ssize(gradient) + kStretch - 1) / kStretch;
}

}  // namespace

GradientReducer::GradientReducer(collective::Communicator& group, std::int64_t timeout_ms)
    : group_(group), timeout_ms_(timeout_ms), thread_([this] {
        set_thread_name("allreduce");
        run();
      }) {}

GradientReducer::~GradientReducer() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (has_work()) group_.close();
    changed_.notify_all();
  }
  thread_.join();
}

void GradientReducer::ready_from(std::span<float> gradient, std::int64_t first) {
  const std::lock_guard lock(mutex_);
  gradient_ = gradient;
  num_ready_ = num_stretches(gradient) - (first + kStretch - 1) / kStretch;
  changed_.notify_all();
}

void GradientReducer::wait(std::span<float> gradient) {
  ready_from(gradient, std::min(kStretch, std::ssize(gradient)));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !has_work(); });
  if (error_) std::rethrow_exception(error_);
  num_ready_ = num_summed_ = 0;
}

void GradientReducer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || has_work(); });
    if (stopped_) return;
    const std::int64_t begin = (num_stretches(gradient_) - 1 - num_summed_) * kStretch;
    const std::int64_t size = std::min(kStretch, std::ssize(gradient_) - begin);
    const auto stretch =
        gradient_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
    lock.unlock();
    std::exception_ptr error;
    try {
      group_.all_reduce_sum(stretch, net::Deadline::after_ms(timeout_ms_));
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    ++num_summed_;
    changed_.notify_all();
  }
}

}  // namespace satrap::trainer
