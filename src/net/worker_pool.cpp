#include "src/net/worker_pool.h"

#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/thread_name.h"

namespace satrap::net {

WorkerPool::WorkerPool(std::int64_t num_threads) {
  for (std::int64_t i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this, i] { work(i); });
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::run(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void WorkerPool::work(std::int64_t index) {
  set_thread_name(concat("net-work-", index));
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = {};
    lock.lock();
  }
}

}  // namespace satrap::net
