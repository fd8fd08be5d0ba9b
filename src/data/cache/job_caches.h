#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "satrap/core/mutex.h"

namespace satrap::data {

class ParsedRowFile;

/// The caches of parsed rows that a job has met, by their paths. Any thread.
class JobCaches {
 public:
  void refuse(const std::string& path) {
    const MutexLock lock(mutex_);
    refused_.insert(path);
  }

  /// Whether there was no room for it: nobody tries again.
  bool has_refused(const std::string& path) const {
    const MutexLock lock(mutex_);
    return refused_.contains(path);
  }

  /// Keeps an open cache, and so its file, for later passes; instead of the one before it.
  void keep(const std::string& path, std::shared_ptr<ParsedRowFile> open) {
    const MutexLock lock(mutex_);
    open_[path] = std::move(open);
  }

 private:
  mutable Mutex mutex_;
  std::set<std::string> refused_ SATRAP_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<ParsedRowFile>> open_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::data
