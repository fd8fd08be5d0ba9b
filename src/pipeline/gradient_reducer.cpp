#include "satrap/pipeline/gradient_reducer.h"

#include <algorithm>

#include "satrap/core/thread_group.h"
#include "satrap/dense/gradient_source.h"

namespace satrap::pipeline {
namespace {

constexpr std::int64_t kBucket = dense::GradientSource::kGradientBucket;

// 4 MiB of gradient: more than a 10 Gbit/s link carries in one round trip between machines.
constexpr std::int64_t kMaxUnderWay = 16;

std::int64_t num_buckets(std::span<const float> gradient) {
  return (std::ssize(gradient) + kBucket - 1) / kBucket;
}

}  // namespace

GradientReducer::GradientReducer(collective::Communicator& group, std::int64_t timeout_ms)
    : group_(group),
      timeout_ms_(timeout_ms),
      thread_(start_thread("allreduce", [this] { run(); })) {}

GradientReducer::~GradientReducer() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    if (has_work()) group_.close();
    changed_.notify_all();
  }
  thread_.join();
}

void GradientReducer::ready_from(std::span<float> gradient, std::int64_t first) {
  const MutexLock lock(mutex_);
  gradient_ = gradient;
  num_ready_ = num_buckets(gradient) - (first + kBucket - 1) / kBucket;
  changed_.notify_all();
}

void GradientReducer::wait(std::span<float> gradient) {
  ready_from(gradient, std::min(kBucket, std::ssize(gradient)));
  const MutexLock lock(mutex_);
  while (has_work()) changed_.wait(mutex_);
  if (error_) std::rethrow_exception(error_);
  num_ready_ = num_summed_ = 0;
}

void GradientReducer::run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopped_ && !has_work()) changed_.wait(mutex_);
    if (stopped_) break;
    const std::span<float> gradient = gradient_;
    const std::int64_t num_ready = num_ready_;
    if (num_summed_ == 0 && under_way_.empty()) num_begun_ = num_added_ = num_finished_ = 0;
    lock.unlock();
    std::exception_ptr error;
    try {
      advance(gradient, num_ready);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    num_summed_ = num_finished_;
    changed_.notify_all();
  }
  lock.unlock();
  under_way_.clear();
}

// Begins the buckets that are ready, then takes one step: an add, which other ranks wait for, or,
// if none is left, the finish of the oldest bucket.
void GradientReducer::advance(std::span<float> gradient, std::int64_t num_ready) {
  for (; num_begun_ < num_ready && std::ssize(under_way_) < kMaxUnderWay; ++num_begun_) {
    const std::int64_t begin = (num_buckets(gradient) - 1 - num_begun_) * kBucket;
    const std::int64_t size = std::min(kBucket, std::ssize(gradient) - begin);
    under_way_.push_back(group_.begin_all_reduce_sum(
        gradient.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size))));
  }
  const net::Deadline deadline = net::Deadline::after_ms(timeout_ms_);
  if (num_added_ < num_begun_) {
    under_way_[static_cast<std::size_t>(num_added_++ - num_finished_)]->add(deadline);
  } else {
    under_way_.front()->finish(deadline);
    under_way_.pop_front();
    ++num_finished_;
  }
}

}  // namespace satrap::pipeline
