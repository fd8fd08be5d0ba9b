#include "checkpoint_paths.h"

#include "satrap/core/error.h"

namespace satrap::app {

std::vector<trainer::CheckpointInfo> checkpoints_of(const std::string& path) {
  std::vector<trainer::CheckpointInfo> found = trainer::list_checkpoints(path);
  if (found.empty()) {
    throw Error(ErrorCode::kIo,
                concat(path, ": neither a checkpoint nor a directory that holds one"));
  }
  return found;
}

std::string newest_checkpoint(const std::string& path) { return checkpoints_of(path).back().path; }

}  // namespace satrap::app
