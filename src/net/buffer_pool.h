#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "satrap/core/mutex.h"

namespace satrap::net {

/// Memory for messages: aligned to 64 bytes, not initialised, of 2^k bytes.
class PooledMemory {
 public:
  PooledMemory() = default;
  PooledMemory(std::byte* data, std::int64_t capacity) : data_(data), capacity_(capacity) {}

  std::byte* data() const { return data_.get(); }
  std::int64_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::int64_t capacity_ = 0;
};

/// Keeps returned memory for the next message of its size class. Memory in use and kept memory
/// together never exceed the most that was in use at once. Fresh memory costs more than receiving
/// into it. Thread-safe.
class BufferPool {
 public:
  /// The largest allocation.
  static constexpr std::int64_t kMaxBytes = std::int64_t{1} << 39;

  /// Throws std::bad_alloc.
  PooledMemory take(std::int64_t bytes);
  void give_back(PooledMemory memory);

  std::int64_t kept_bytes() const {
    const MutexLock lock(mutex_);
    return kept_bytes_;
  }

 private:
  bool is_too_much(const PooledMemory& more) const SATRAP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::array<std::vector<PooledMemory>, 64> free_
      SATRAP_GUARDED_BY(mutex_);  // by log2 of the capacity
  std::int64_t kept_bytes_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::int64_t used_bytes_ SATRAP_GUARDED_BY(mutex_) = 0;
  std::int64_t most_used_bytes_ SATRAP_GUARDED_BY(mutex_) = 0;
};

}  // namespace satrap::net
