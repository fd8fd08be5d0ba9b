#pragma once

#include <string>
#include <string_view>

#include "satrap/core/mutex.h"

namespace satrap {

/// Shared by log messages and the progress line: a file descriptor whose last line, on a terminal,
/// stays below everything that is printed. Thread-safe. Write errors are ignored: there is no
/// better place to report them.
class Terminal {
 public:
  Terminal(int fd, bool is_terminal) : fd_(fd), is_terminal_(is_terminal) {}

  bool is_terminal() const { return is_terminal_; }

  /// Prints whole lines, above the last line.
  void print(std::string_view lines);

  /// Sets the last line, cut to the width of the terminal; "" removes it.
  void set_last_line(const std::string& text);

  /// The terminal at stderr.
  static Terminal& standard_error();

 private:
  void write(std::string_view text) const;
  std::string cut(const std::string& text) const;

  const int fd_;
  const bool is_terminal_;
  Mutex mutex_;
  std::string last_line_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap
