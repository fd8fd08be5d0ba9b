#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "satrap/core/mutex.h"

namespace satrap::trainer {

struct RunLockOptions {
  std::chrono::milliseconds beat{5000};
  std::string machine = "";  // the identity of this machine; "": that of the kernel that runs
};

/// Keeps a run directory for one job at a time. The file `.lock` in it names the owner: host,
/// process, and since when. A process of this machine that was killed gives the directory free at
/// once, because the kernel gives its lock (flock) free.
///
/// Machines that share the directory may not see each other's locks: therefore the owner also
/// touches the file every `beat`, and a start that finds the record of another machine takes over
/// only if nobody has touched the file for `kMissedBeats` of them. An owner that was paused for
/// longer notices at its next require_held() that the directory is another's.
class RunLock {
 public:
  static constexpr int kMissedBeats = 3;

  /// Takes the directory, which exists. Throws Error(kInvalidConfig) that names the owner if
  /// another job has it, Error(kIo) if the file cannot be written. Blocks for kMissedBeats beats if
  /// a process of another machine was killed.
  explicit RunLock(const std::string& directory, RunLockOptions options = {});

  /// Gives the directory free, and removes the file.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Throws Error(kIo) if another job has taken the directory meanwhile. Reads the file. Any thread
  /// may call it.
  void require_held() const;

 private:
  bool open_and_lock();  // false: another process holds the lock
  void refuse_if_alive() const;
  bool is_touched() const;  // waits for kMissedBeats beats
  bool is_anothers() const;
  void write_record();
  void beat();
  void close_file();

  const std::string directory_, path_;
  const RunLockOptions options_;
  std::string record_;  // what this process has written
  int fd_ = -1;
  bool can_lock_ = true;  // false: the file system has no locks
  Mutex mutex_;
  CondVar ended_;
  bool ends_ SATRAP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace satrap::trainer
