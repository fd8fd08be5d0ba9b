#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace satrap {

/// printable() but for line ends and tabs: what a terminal may be given of data. `lines` ends with
/// a whole character.
std::string printable_lines(std::string_view lines);

/// Whether a terminal shows what is written to `stream`.
bool is_terminal(std::FILE* stream);

}  // namespace satrap
