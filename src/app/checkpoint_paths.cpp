#include "checkpoint_paths.h"

#include <CLI/CLI.hpp>

#include "satrap/core/error.h"

namespace satrap::app {

void add_checkpoint_option(CLI::App& command, std::string& path) {
  command.add_option("--checkpoint", path, "A checkpoint, or a run directory for its newest")
      ->required()
      ->type_name("DIR");
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

}  // namespace satrap::app
