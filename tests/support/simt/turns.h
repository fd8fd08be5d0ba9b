#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "tests/support/simt/executor.h"

namespace simt {

/// Calls of several threads come one after the other: a thread that has the turn uses the devices.
/// Taken as a mutex, also by a thread that has it already.
class Turns {
 public:
  void lock() {
    if (owner_.load(std::memory_order_relaxed) != std::this_thread::get_id()) {
      mutex_.lock();
      owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    ++depth_;
  }
  void unlock() {
    if (--depth_ > 0) return;
    owner_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }

  /// Tells those who rest that something may go on. Any thread, with the turn or without.
  void ring() {
    const std::lock_guard lock(bell_mutex_);
    ++rings_;
    bell_.notify_all();
  }
  std::uint64_t rings() const {
    const std::lock_guard lock(bell_mutex_);
    return rings_;
  }

  /// Gives the turn to others until the bell has been rung after the ring number `heard`, or for a
  /// moment: not everything that lets work go on rings.
  void rest(std::uint64_t heard) {
    if (depth_ != 1) throw Fault("work of a stream waits for work that waits for other devices");
    unlock();
    {
      std::unique_lock lock(bell_mutex_);
      bell_.wait_for(lock, std::chrono::milliseconds(10), [&] { return rings_ != heard; });
    }
    lock();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  int depth_ = 0;  // of the owner's calls
  mutable std::mutex bell_mutex_;
  std::condition_variable bell_;
  std::uint64_t rings_ = 0;
};

/// Those of the program.
Turns& turns();
using Turn = std::lock_guard<Turns>;

}  // namespace simt
