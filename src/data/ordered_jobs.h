#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

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
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return closed_ || !free_.empty(); });
    if (closed_) return nullptr;
    Numbered* const job = free_.back();
    free_.pop_back();
    job->number = next_acquired_++;
    return job;
  }

  void deliver(Numbered* job) {
    std::lock_guard lock(mutex_);
    place_of(job->number) = job;
    if (job->number == next_taken_) arrived_.notify_one();
  }

  /// Blocks until the job after the last one taken is ready. Null after close().
  Numbered* take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return closed_ || place_of(next_taken_) != nullptr; });
    if (closed_) return nullptr;
    return std::exchange(place_of(next_taken_++), nullptr);
  }

  /// Returns a taken job to the workers.
  void release(Numbered* job) {
    std::lock_guard lock(mutex_);
    free_.push_back(job);
    freed_.notify_one();
  }

  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    freed_.notify_all();
    arrived_.notify_all();
  }

 private:
  // At most delivered_.size() consecutive numbers are in progress: no two share a place.
  Numbered*& place_of(std::int64_t number) {
    return delivered_[static_cast<std::size_t>(number) % delivered_.size()];
  }

  std::mutex mutex_;
  std::condition_variable freed_, arrived_;
  std::vector<std::unique_ptr<Numbered>> jobs_;
  std::vector<Numbered*> free_;
  std::vector<Numbered*> delivered_;
  std::int64_t next_acquired_ = 0;
  std::int64_t next_taken_ = 0;
  bool closed_ = false;
};

}  // namespace satrap::data
