#pragma once

#include <string_view>

namespace satrap::cli {

/// Writes a result to standard output, at once; on a terminal as printable_lines() has it. Throws
/// Error(kIo) if not all of it could be written (a full disk), Error(kClosedPipe) if nobody reads
/// it: a command whose result is lost has not succeeded.
void print(std::string_view text);

}  // namespace satrap::cli
