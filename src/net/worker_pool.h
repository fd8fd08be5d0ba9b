#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace satrap::net {

/// Threads that run tasks in the order of arrival. The number of requests that clients may have
/// unanswered bounds the queue.
class WorkerPool {
 public:
  explicit WorkerPool(std::int64_t num_threads);
  ~WorkerPool();  // drops tasks that have not started; joins
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void run(std::function<void()> task);

 private:
  void work(std::int64_t index);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace satrap::net
