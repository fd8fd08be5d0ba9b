#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/net/deadline.h"
#include "satrap/net/net_error.h"
#include "src/net/link.h"

namespace satrap::net {

/// The slots of a connection that no request occupies. Thread-safe. Outlives the connection if
/// the breaker's thread still holds it.
class Credits {
 public:
  void fill(std::int64_t count) {
    const MutexLock lock(mutex_);
    for (std::int64_t i = count; i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
  }

  /// Takes a free slot; waits until the deadline or until the link breaks.
  std::uint32_t take(const Breaker& breaker, Deadline deadline) {
    const MutexLock lock(mutex_);
    while (free_.empty() && !breaker.is_tripped() && changed_.wait_until(mutex_, deadline.at())) {
    }
    breaker.check();
    if (free_.empty()) {
      throw NetError(NetFailure::kTimeout, "the server has answered none of the pending requests");
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void give_back(std::uint32_t slot) {
    const MutexLock lock(mutex_);
    free_.push_back(slot);
    changed_.notify_one();
  }

  /// Wakes all waiting threads, after the link broke.
  void wake() {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::uint32_t> free_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::net
