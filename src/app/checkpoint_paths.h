#pragma once

#include <string>
#include <vector>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/continuation.h"

namespace CLI {
class App;
}

namespace satrap::app {

/// Adds the required option --checkpoint DIR and --accept-changed-config, for commands that use
/// one.
void add_checkpoint_options(CLI::App& command, checkpoint::UsedCheckpoint& checkpoint);

/// The checkpoints meant by `path`: itself if it is one, else all of a run directory or of a
/// `checkpoints` directory, oldest first; never empty. Throws Error(kIo) if there is none.
std::vector<checkpoint::CheckpointInfo> checkpoints_of(const std::string& path);

/// Path of the newest of them.
std::string newest_checkpoint(const std::string& path);

/// With the path of the newest of them.
checkpoint::UsedCheckpoint newest_checkpoint(checkpoint::UsedCheckpoint checkpoint);

}  // namespace satrap::app
