#pragma once

#include <string_view>

namespace satrap::data {

/// Whether a file of this name holds data: it ends as a format names its files, as text in columns
/// mostly is named (.csv, .tsv, .txt, .data), or is packed (.gz, .zst).
bool is_data_name(std::string_view name);

}  // namespace satrap::data
