#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace satrap {

/// A fixed set of threads that run loops. The caller of a loop works on it too, so a pool of
/// `num_threads` has num_threads - 1 threads of its own, and one of size 1 has none.
///
/// Any number of threads may run loops at the same time (the stages of the trainer do); a loop body
/// must not start another loop. Which thread runs which index is undefined: write results by index
/// to make them reproducible. Threads sleep while there is nothing to do.
class ThreadPool {
 public:
  explicit ThreadPool(std::int64_t num_threads);  // >= 1
  ~ThreadPool();                                  // joins; no loop may be running
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::int64_t num_threads() const;

  /// Calls body(0) ... body(count - 1), each once, and returns when all have returned. The first
  /// exception of a body is rethrown here, after every started body has ended.
  void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap
