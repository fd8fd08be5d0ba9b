#include "satrap/core/printable_lines.h"

#include <algorithm>

#include <unistd.h>

#include "satrap/core/text.h"

namespace satrap {

std::string printable_lines(std::string_view lines) {
  std::string shown;
  shown.reserve(lines.size());
  while (!lines.empty()) {
    const std::size_t size = std::min(lines.find_first_of("\n\t"), lines.size());
    shown += printable(lines.substr(0, size));
    if (size < lines.size()) shown += lines[size];
    lines.remove_prefix(std::min(size + 1, lines.size()));
  }
  return shown;
}

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

}  // namespace satrap
