#include "src/core/terminal.h"

#include <cerrno>
#include <cstddef>

#include <sys/ioctl.h>
#include <unistd.h>

namespace satrap {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

void Terminal::print(std::string_view lines) {
  const MutexLock lock(mutex_);
  if (last_line_.empty()) {
    write(lines);
    return;
  }
  std::string text(kEraseLine);  // in one write, so that nothing flickers
  text.append(lines);
  text += cut(last_line_);
  write(text);
}

void Terminal::set_last_line(const std::string& text) {
  if (!is_terminal_) return;
  const MutexLock lock(mutex_);
  if (text.empty() && last_line_.empty()) return;
  last_line_ = text;
  write(std::string(kEraseLine) + cut(text));
}

void Terminal::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Leaves one column free: a full last column makes some terminals wrap to the next line.
std::string Terminal::cut(const std::string& text) const {
  winsize size = {};
  constexpr std::size_t kUsualWidth = 80;
  const bool known = ::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  std::size_t columns = (known ? size.ws_col : kUsualWidth) - 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins_character && columns-- == 0) return text.substr(0, i);
  }
  return text;
}

Terminal& Terminal::standard_error() {
  static Terminal terminal(STDERR_FILENO, ::isatty(STDERR_FILENO) == 1);
  return terminal;
}

}  // namespace satrap
