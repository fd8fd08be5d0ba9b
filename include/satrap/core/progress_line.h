#pragma once

#include <string>

namespace satrap {

/// The last line of the terminal, for as long as this object lives: log messages appear above it.
/// If stderr is not a terminal, nothing is written; plain lines for files are log messages.
///
/// One object at a time; its functions are thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether stderr is a terminal, so that show() has an effect.
  bool is_visible() const;

  /// Replaces the line, cut to the width of the terminal. `text` is one line of UTF-8.
  void show(const std::string& text);
};

}  // namespace satrap
