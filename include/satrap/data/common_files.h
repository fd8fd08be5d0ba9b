#pragma once

#include <string>
#include <vector>

#include "satrap/data/dataset.h"

namespace satrap::data {

/// The evaluation files that are training files too: the same file, or a copy, which has the same
/// size, beginning and end. Files that cannot be read are left out: reading them reports why.
std::vector<std::string> common_files(const Dataset& data);

/// Explains `files`, the result of common_files, which is not empty, and says what to do.
std::string describe_common_files(const std::vector<std::string>& files);

}  // namespace satrap::data
