#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <pthread.h>

#include "satrap/core/mutex.h"
#include "src/data/files/object_store.h"

namespace satrap::data {

/// Runs calls that nothing can end, each on a thread of its own (`data-s3`), so that who waits for
/// one can leave it. Thread-safe. A process that exits while a call that was left still runs ends
/// at once, with its exit status.
class AbandonableCalls {
 public:
  AbandonableCalls() = default;
  ~AbandonableCalls();
  AbandonableCalls(const AbandonableCalls&) = delete;
  AbandonableCalls& operator=(const AbandonableCalls&) = delete;

  /// Returns what call() returns, or throws what it throws. Throws a StoreFailure soon after
  /// is_cancelled() becomes true; then the call may still run, so it must own what it uses.
  template <class Call>
  std::invoke_result_t<Call> run(const IsCancelled& is_cancelled, Call call) {
    std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
    auto result = task.get_future();
    ++num_running_;
    std::thread thread([this, task = std::move(task)]() mutable {
      pthread_setname_np(pthread_self(), "data-s3");
      task();
      --num_running_;
    });
    while (result.wait_for(kNap) != std::future_status::ready) {
      if (is_cancelled && is_cancelled()) abandon(std::move(thread));
    }
    thread.join();
    return result.get();
  }

  bool all_have_ended() const { return num_running_ == 0; }

 private:
  static constexpr std::chrono::milliseconds kNap{50};

  [[noreturn]] void abandon(std::thread thread);

  std::atomic<int> num_running_{0};
  Mutex mutex_;
  std::vector<std::thread> abandoned_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::data
