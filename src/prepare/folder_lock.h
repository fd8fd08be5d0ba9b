#pragma once

#include <string>

namespace satrap::prepare {

/// Keeps a folder for one preparation at a time by a lock (flock) on the file `.prepare.lock` in
/// it, which names the process that holds it and is empty otherwise. The kernel gives the lock of a
/// killed process free. On a file system without locks nothing is locked.
class FolderLock {
 public:
  static constexpr const char* kFile = ".prepare.lock";

  /// Locks a folder, which exists. Throws Error(kInvalidConfig) that names the holder if there is
  /// one, Error(kIo).
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace satrap::prepare
