#include "checkpoint_paths.h"

#include <CLI/CLI.hpp>

#include "satrap/core/error.h"

namespace satrap::app {

void add_checkpoint_options(CLI::App& command, checkpoint::UsedCheckpoint& checkpoint) {
  command
      .add_option("--checkpoint", checkpoint.path,
                  "A checkpoint, or a run directory for its newest")
      ->required()
      ->type_name("DIR");
  command.add_flag("--accept-changed-config", checkpoint.accept_changed_config,
                   "Use the checkpoint although the configuration reads or computes something else "
                   "than it was trained with");
}

std::vector<checkpoint::CheckpointInfo> checkpoints_of(const std::string& path) {
  std::vector<checkpoint::CheckpointInfo> found = checkpoint::list_checkpoints(path);
  if (found.empty()) {
    throw Error(ErrorCode::kIo,
                concat(path, ": neither a checkpoint nor a directory that holds one"));
  }
  return found;
}

std::string newest_checkpoint(const std::string& path) { return checkpoints_of(path).back().path; }

checkpoint::UsedCheckpoint newest_checkpoint(checkpoint::UsedCheckpoint checkpoint) {
  checkpoint.path = newest_checkpoint(checkpoint.path);
  return checkpoint;
}

}  // namespace satrap::app
