#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "satrap/core/mutex.h"

namespace satrap::data {

/// A fixed number of jobs that are reused: workers acquire() jobs in the order of their numbers and
/// deliver() them in any order; one consumer gets them in the order of their numbers. So several
/// threads work ahead of the consumer, at most by the number of jobs, and the memory of the
/// jobs is reused. Thread-safe.
template <class Job>
class OrderedJobs {
 public:
  struct Numbered {
    std::int64_t number = 0;
    Job job;
  };

  explicit OrderedJobs(std::int64_t num_jobs) : delivered_(static_cast<std::size_t>(num_jobs)) {
    for (std::int64_t i = 0; i < num_jobs; ++i) {
      jobs_.push_back(std::make_unique<Numbered>());
      free_.push_back(jobs_.back().get());
    }
  }

  /// Blocks until a job is free; gives it the next number, from 0. Null after close().
  Numbered* acquire() {
    const MutexLock lock(mutex_);
    while (!closed_ && free_.empty()) freed_.wait(mutex_);
    if (closed_) return nullptr;
    Numbered* const job = free_.back();
    free_.pop_back();
    job->number = next_acquired_++;
    return job;
  }

  void deliver(Numbered* job) {
    const MutexLock lock(mutex_);
    place_of(job->number) = job;
    if (job->number == next_taken_) arrived_.notify_one();
  }

  /// Blocks until the job after the last one taken is ready. Null after close().
  Numbered* take() {
    const MutexLock lock(mutex_);
    while (!closed_ && place_of(next_taken_) == nullptr) arrived_.wait(mutex_);
    if (closed_) return nullptr;
    return std::exchange(place_of(next_taken_++), nullptr);
  }

  /// Returns a taken job to the workers.
  void release(Numbered* job) {
    const MutexLock lock(mutex_);
    free_.push_back(job);
    freed_.notify_one();
  }

  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    freed_.notify_all();
    arrived_.notify_all();
  }

 private:
  // At most delivered_.size() consecutive numbers are in progress: no two share a place.
  Numbered*& place_of(std::int64_t number) SATRAP_REQUIRES(mutex_) {
    return delivered_[static_cast<std::size_t>(number) % delivered_.size()];
  }

  Mutex mutex_;
  CondVar freed_, arrived_;
  std::vector<std::unique_ptr<Numbered>> jobs_;
  std::vector<Numbered*> free_ SATRAP_GUARDED_BY(mutex_);
  std::vector<Numbered*> delivered_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t next_acquired_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::int64_t next_taken_ SATRAP_GUARDED_BY(mutex_) = 0;
  bool closed_ SATRAP_GUARDED_BY(mutex_) = false;
};

}  // namespace satrap::data
