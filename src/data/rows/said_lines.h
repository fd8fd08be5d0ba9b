#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "satrap/core/mutex.h"

namespace satrap::data {

/// What a job has said of its data: each pass over the same rows would say it again. Any thread.
class SaidLines {
 public:
  bool is_new(const std::string& line) {
    const MutexLock lock(mutex_);
    return said_.size() >= kMost || said_.insert(line).second;
  }

 private:
  static constexpr std::size_t kMost = 10'000;
  Mutex mutex_;
  std::set<std::string> said_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::data
