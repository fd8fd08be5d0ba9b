#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "satrap/core/thread_annotations.h"

namespace satrap {

/// std::mutex for clang to check: a member that it guards says so (SATRAP_GUARDED_BY), and so does
/// a function whose caller holds it (SATRAP_REQUIRES). Costs what std::mutex costs.
class SATRAP_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  /// MutexLock does these two.
  void lock() SATRAP_ACQUIRE() { mutex_.lock(); }
  void unlock() SATRAP_RELEASE() { mutex_.unlock(); }

  /// Does not block. Returns whether the caller now holds it.
  [[nodiscard]] bool try_lock() SATRAP_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

  /// Tells clang that the caller holds it, where that was said by another name. Checks nothing.
  void assert_held() const SATRAP_ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;

  std::mutex mutex_;
};

/// Holds a mutex while it lives, but between unlock() and lock().
class SATRAP_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SATRAP_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SATRAP_RELEASE() {
    if (is_held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() SATRAP_ACQUIRE() {
    mutex_.lock();
    is_held_ = true;
  }
  void unlock() SATRAP_RELEASE() {
    mutex_.unlock();
    is_held_ = false;
  }

 private:
  Mutex& mutex_;
  bool is_held_ = true;
};

/// A thread waits here until another has changed what a mutex guards. A wait may end early, so it
/// is in a loop (clang checks no predicate):
///
///   while (items_.empty()) arrived_.wait(mutex_);
///   while (items_.empty() && arrived_.wait_until(mutex_, deadline)) continue;
class CondVar {
 public:
  /// Gives the mutex back, blocks until a notice, takes the mutex again.
  void wait(Mutex& mutex) SATRAP_REQUIRES(mutex) {
    Lent lock(mutex);
    changed_.wait(lock.lock);
  }

  /// The same, at most until `time`. Returns whether there was a notice before it.
  template <class Clock, class Duration>
  bool wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& time)
      SATRAP_REQUIRES(mutex) {
    Lent lock(mutex);
    return changed_.wait_until(lock.lock, time) == std::cv_status::no_timeout;
  }

  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  // The mutex that the caller holds, in the form that the standard library takes.
  struct Lent {
    explicit Lent(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Lent() { lock.release(); }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable changed_;
};

/// std::shared_mutex for clang to check: one thread holds it alone, or several share it.
class SATRAP_CAPABILITY("mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  /// ExclusiveLock and SharedLock do these.
  void lock() SATRAP_ACQUIRE() { mutex_.lock(); }
  void unlock() SATRAP_RELEASE() { mutex_.unlock(); }
  void lock_shared() SATRAP_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() SATRAP_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

/// Holds a shared mutex alone while it lives.
class SATRAP_SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) SATRAP_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  ~ExclusiveLock() SATRAP_RELEASE() { mutex_.unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

/// Shares a shared mutex while it lives.
class SATRAP_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) SATRAP_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~SharedLock() SATRAP_RELEASE() { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace satrap
