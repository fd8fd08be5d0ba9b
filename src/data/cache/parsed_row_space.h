#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "src/data/cache/job_caches.h"

namespace satrap::data {

/// The room for caches of rows in a folder that several processes may use. With a limit, a cache
/// that is written makes room by removing those that were used longest ago (by their modification
/// times), but none that a process uses: readers have a shared lock (flock) on it, its writer an
/// exclusive one. Any thread.
class ParsedRowSpace {
 public:
  /// `max_bytes` of all caches together, also unfinished ones; 0: no limit. `caches` outlives the
  /// object's pass, so that nobody tries again what was refused. `patience`: with another process
  /// that has the folder's lock.
  ParsedRowSpace(std::string folder,
                 std::int64_t max_bytes,
                 std::shared_ptr<JobCaches> caches,
                 std::chrono::milliseconds patience = std::chrono::seconds(10));

  /// Others neither begin a cache nor make room while it lives. No lock without flock.
  class Lock {
   public:
    Lock(const std::string& folder, std::chrono::milliseconds patience);

    /// Before the cache `path` is begun or grows. Throws Error(kIo) if another process keeps the
    /// lock: the cache is then refused.
    Lock(const ParsedRowSpace& space, const std::string& path);

    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    bool is_others() const { return is_others_; }  // another process still has it

   private:
    const int fd_;
    bool is_others_ = false;
  };

  /// Whether the cache `path` had no room.
  bool has_refused(const std::string& path) const { return caches_->has_refused(path); }

  /// Makes room for `bytes` in the unfinished cache of `path`, which is open for writing at `fd`.
  /// Returns how many bytes it may have, which are its size as others see it. `expected`: its bytes
  /// in the end, as far as known; a cache that will not fit has no other removed. Throws
  /// Error(kIo), also if there is no room, which is then a refusal.
  std::int64_t reserve(const std::string& path,
                       int fd,
                       std::int64_t bytes,
                       std::int64_t expected) const;

  /// Removes caches until the limit holds, or all that are left are in use. Leaves that to another
  /// process that has the lock.
  void trim() const;

 private:
  [[noreturn]] void refuse(const std::string& path, std::int64_t needed, std::int64_t in_use) const;

  const std::string folder_;
  const std::int64_t max_bytes_;
  const std::shared_ptr<JobCaches> caches_;
  const std::chrono::milliseconds patience_;
};

/// The unfinished cache of `path`.
std::string part_of_cache(const std::string& path);

}  // namespace satrap::data
