#pragma once

#include <string>
#include <vector>

#include "satrap/data/data_file.h"

namespace satrap::checkpoint {

/// The training files as data.json of a checkpoint, one a line. A path that is not UTF-8 is kept
/// approximately: it is for people, and files are told apart by their content.
std::string data_record(const std::vector<data::DataFile>& files);

/// Reads it back. Throws Error(kCorrupt) starting with `name` if it is none.
std::vector<data::DataFile> parse_data_record(const std::string& text, const std::string& name);

}  // namespace satrap::checkpoint
