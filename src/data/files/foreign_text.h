#pragma once

#include <string>
#include <string_view>

namespace satrap::data {

bool is_json_object(std::string_view line);

/// If the first line of a file that is read as text in columns shows another format of text (JSON
/// lines, libsvm, libffm): what it is, and what to do. "": it does not. `is_header`: it should name
/// columns; else numbers with indices may be weighted ids. `is_file`: a name can show its format.
std::string foreign_text(std::string_view line, bool is_header, bool is_file = true);

/// The advice for data that another program must read.
inline constexpr const char* kPipeIt =
    "write it as CSV, or pipe it: `... | satrap train JOB data.train.path=-`";

}  // namespace satrap::data
