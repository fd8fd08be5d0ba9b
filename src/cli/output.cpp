#include "satrap/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "satrap/core/error.h"
#include "satrap/core/printable_lines.h"

namespace satrap::cli {

void print(std::string_view text) {
  const std::string shown = is_terminal(stdout) ? printable_lines(text) : "";
  if (!shown.empty()) text = shown;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    const ErrorCode code = errno == EPIPE ? ErrorCode::kClosedPipe : ErrorCode::kIo;
    throw Error(code, concat("cannot write to standard output: ", std::strerror(errno)));
  }
}

}  // namespace satrap::cli
