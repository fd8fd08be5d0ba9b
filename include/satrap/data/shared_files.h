#pragma once

#include <string>
#include <vector>

#include "satrap/data/config.h"

namespace satrap::data {

/// The evaluation files that are training files too: the same file, or a copy, which has the same
/// size, beginning and end. Files that cannot be read are left out: reading them reports why.
std::vector<std::string> shared_files(const DataConfig& config);

/// What `files`, not empty, of shared_files mean, and what to do.
std::string describe_shared_files(const std::vector<std::string>& files);

}  // namespace satrap::data
