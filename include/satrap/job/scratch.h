#pragma once

#include <memory>
#include <string>

#include "satrap/job/job_config.h"

namespace satrap::job {

/// The folder of this machine where jobs with a run_dir in a store keep files: the environment's
/// SATRAP_SCRATCH, else a folder of this user's own among the system's temporary files. Creates it.
/// Throws Error(kIo) if it cannot be written to, Error(kInvalidConfig) if it is another user's.
std::string scratch_folder();

/// A new folder in the scratch_folder(), which is removed with this object, or when a process of
/// this machine makes the next one after this process was killed: a lock (flock) on `.lock` in it
/// says that it is in use.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  class Lock;

  std::string path_;
  std::unique_ptr<Lock> lock_;
};

/// The folder of this machine in which a job writes: its run_dir or, if that is a URL, one in the
/// scratch_folder() that follows from it and has its last name.
std::string local_run_dir(const JobConfig& config);

}  // namespace satrap::job
