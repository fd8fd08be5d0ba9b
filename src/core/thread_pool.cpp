#include "satrap/core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"

namespace satrap {
namespace {

// One call of parallel_for. It lives on the caller's stack: the caller returns only after it has
// removed the loop from the list and the last helper has left it.
struct Loop {
  const std::int64_t count;
  const std::function<void(std::int64_t)>& body;
  std::atomic<std::int64_t> next{0};
  Mutex error_mutex{};
  std::exception_ptr error SATRAP_GUARDED_BY(error_mutex){};

  // Guarded by the pool's mutex.
  std::int64_t num_helpers = 0;  // threads of the pool inside work()
  CondVar helpers_left{};

  // Runs bodies until none is left to start.
  void work() {
    for (;;) {
      const std::int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      try {
        body(i);
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  void fail(std::exception_ptr exception) {
    next.store(count, std::memory_order_relaxed);  // start no further body
    const MutexLock lock(error_mutex);
    if (!error) error = std::move(exception);
  }

  void rethrow() {
    const MutexLock lock(error_mutex);
    if (error) std::rethrow_exception(error);
  }

  bool exhausted() const { return next.load(std::memory_order_relaxed) >= count; }
};

}  // namespace

class ThreadPool::Impl {
 public:
  explicit Impl(std::int64_t num_threads) : num_threads_(num_threads) {
    constexpr std::size_t kUsualNumCallers = 16;
    loops_.reserve(kUsualNumCallers);
    for (std::int64_t i = 0; i + 1 < num_threads; ++i) {
      threads_.start(concat("pool-", i), [this] { serve(); });
    }
  }

  std::int64_t num_threads() const { return num_threads_; }

  void run(Loop& loop) {
    MutexLock lock(mutex_);
    loops_.push_back(&loop);
    const std::int64_t num_wanted = std::min(loop.count - 1, num_asleep_);
    lock.unlock();
    for (std::int64_t i = 0; i < num_wanted; ++i) work_arrived_.notify_one();

    loop.work();

    lock.lock();
    std::erase(loops_, &loop);  // from here on no other thread enters
    while (loop.num_helpers > 0) loop.helpers_left.wait(mutex_);
  }

 private:
  // The main function of a thread of the pool.
  void serve() {
    MutexLock lock(mutex_);
    for (;;) {
      Loop* loop = next_loop();
      if (loop == nullptr) {
        if (stopping_) return;
        ++num_asleep_;
        work_arrived_.wait(mutex_);
        --num_asleep_;
        continue;
      }
      ++loop->num_helpers;
      lock.unlock();
      loop->work();
      lock.lock();
      // Under the lock: the caller may destroy the loop as soon as it can see zero.
      if (--loop->num_helpers == 0) loop->helpers_left.notify_one();
    }
  }

  void stop() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    work_arrived_.notify_all();
  }

  // A loop with bodies left to start, in turn among callers.
  Loop* next_loop() SATRAP_REQUIRES(mutex_) {
    std::erase_if(loops_, [](const Loop* loop) { return loop->exhausted(); });
    if (loops_.empty()) return nullptr;
    std::rotate(loops_.begin(), loops_.begin() + 1, loops_.end());
    return loops_.back();
  }

  const std::int64_t num_threads_;
  Mutex mutex_;
  CondVar work_arrived_;
  std::vector<Loop*> loops_ SATRAP_GUARDED_BY(mutex_);  // that may have bodies left to start
  std::int64_t num_asleep_ SATRAP_GUARDED_BY(mutex_) = 0;
  bool stopping_ SATRAP_GUARDED_BY(mutex_) = false;
  ThreadGroup threads_{[this] { stop(); }};
};

ThreadPool::ThreadPool(std::int64_t num_threads) {
  SATRAP_CHECK(num_threads >= 1, "a thread pool needs at least 1 thread, got ", num_threads);
  impl_ = std::make_unique<Impl>(num_threads);
}

ThreadPool::~ThreadPool() = default;

std::int64_t ThreadPool::num_threads() const { return impl_->num_threads(); }

void ThreadPool::parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  if (count <= 0) return;
  if (count == 1 || num_threads() == 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  Loop loop{.count = count, .body = body};
  impl_->run(loop);
  loop.rethrow();
}

}  // namespace satrap
