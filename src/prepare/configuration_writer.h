#pragma once

#include <string>
#include <vector>

namespace satrap::prepare {

// The configurations of a data set in the folder of its parts. A file of another text, such as one
// that the user has edited, is left as it is.

/// Writes those that are missing. Returns the names of files that have another text.
std::vector<std::string> write_configurations(const std::string& set, const std::string& folder);

/// Removes those that are as write_configurations writes them.
void remove_configurations(const std::string& set, const std::string& folder);

}  // namespace satrap::prepare
