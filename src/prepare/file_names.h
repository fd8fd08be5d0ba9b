#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace satrap::prepare {

// Names of the files that a preparation writes to its folder.

/// Whether a split may be called so: letters, digits and '_'.
bool is_split_name(std::string_view name);

/// The part that the rows of a split in a piece become: "train-00000.txt.zst".
std::string part_name(std::string_view split, std::int64_t piece);

/// Whether part_name gives this name for any split and piece.
bool is_part_name(std::string_view name);

/// The name that a file gets when it is complete, from the one that write_file_atomic or
/// data::OutputFile writes it under; empty if the name is none of theirs.
std::string_view complete_name(std::string_view temporary);

}  // namespace satrap::prepare
