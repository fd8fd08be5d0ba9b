#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"

namespace satrap::net {

/// Threads that run tasks in the order of arrival. The number of requests that clients may have
/// unanswered bounds the queue. The destructor drops tasks that have not started, and joins.
class WorkerPool {
 public:
  explicit WorkerPool(std::int64_t num_threads);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void run(std::function<void()> task);

 private:
  void work();
  void stop();

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ SATRAP_GUARDED_BY(mutex_);
  bool is_stopped_ SATRAP_GUARDED_BY(mutex_) = false;
  ThreadGroup threads_{[this] { stop(); }};
};

}  // namespace satrap::net
