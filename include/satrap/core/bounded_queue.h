#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "satrap/core/mutex.h"

namespace satrap {

/// A first-in-first-out queue between threads that never holds more than `capacity` items.
/// Either side may close() it: producers are refused from then on, consumers get the remaining
/// items and then nothing. Any number of producers and consumers; all functions are thread-safe.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Blocks while full. Returns false and drops `item` once the queue is closed.
  bool push(T item) {
    const MutexLock lock(mutex_);
    while (!closed_ && items_.size() >= capacity_) not_full_.wait(mutex_);
    if (closed_) return false;
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return true;
  }

  /// Blocks while empty and open. An empty result means closed and drained.
  std::optional<T> pop() {
    const MutexLock lock(mutex_);
    while (!has_answer()) not_empty_.wait(mutex_);
    return take();
  }

  /// As pop, without blocking.
  std::optional<T> try_pop() {
    const MutexLock lock(mutex_);
    return take();
  }

  /// Blocks while empty and open, at most for so long. Returns whether pop() would not block.
  bool wait(std::chrono::milliseconds at_most) {
    const MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + at_most;
    while (!has_answer() && not_empty_.wait_until(mutex_, until)) continue;
    return has_answer();
  }

  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  std::size_t size() const {
    const MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  bool has_answer() const SATRAP_REQUIRES(mutex_) { return closed_ || !items_.empty(); }

  std::optional<T> take() SATRAP_REQUIRES(mutex_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    not_full_.notify_one();
    return item;
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar not_full_, not_empty_;
  std::deque<T> items_ SATRAP_GUARDED_BY(mutex_);
  bool closed_ SATRAP_GUARDED_BY(mutex_) = false;
};

}  // namespace satrap
