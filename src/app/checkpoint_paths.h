#pragma once

#include <string>
#include <vector>

#include "satrap/checkpoint/checkpoint.h"

namespace CLI {
class App;
}

namespace satrap::app {

/// Adds the required option --checkpoint DIR, for commands that use one.
void add_checkpoint_option(CLI::App& command, std::string& path);

/// The checkpoints meant by `path`: itself if it is one, else all of a run directory or of a
/// `checkpoints` directory, oldest first; never empty. Throws Error(kIo) if there is none.
std::vector<checkpoint::CheckpointInfo> checkpoints_of(const std::string& path);

/// Path of the newest of them.
std::string newest_checkpoint(const std::string& path);

}  // namespace satrap::app
