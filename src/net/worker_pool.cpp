#include "src/net/worker_pool.h"

#include <utility>

#include "satrap/core/error.h"

namespace satrap::net {

WorkerPool::WorkerPool(std::int64_t num_threads) {
  for (std::int64_t i = 0; i < num_threads; ++i) {
    threads_.start(concat("net-work-", i), [this] { work(); });
  }
}

void WorkerPool::stop() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

void WorkerPool::run(std::function<void()> task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void WorkerPool::work() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!is_stopped_ && tasks_.empty()) changed_.wait(mutex_);
    if (is_stopped_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = {};
    lock.lock();
  }
}

}  // namespace satrap::net
