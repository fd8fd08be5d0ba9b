#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace satrap::prepare {

/// Consecutive lines of one file.
struct LineBlock {
  std::string file;             // as messages name it
  std::int64_t first_line = 1;  // number of the first line in the file
  std::int64_t first_row = 0;   // number of the first line among all lines of the source
  std::int64_t num_lines = 0;
  std::string text;  // every line with its '\n'

  /// Calls body(line, i) for the i-th line, from 0.
  template <class Body>
  void for_each(Body&& body) const {
    std::string_view rest = text;
    for (std::int64_t i = 0; i < num_lines; ++i) {
      const std::size_t end = rest.find('\n');
      body(rest.substr(0, end), i);
      rest.remove_prefix(end + 1);
    }
  }

  /// "train.txt:17", for messages.
  std::string place(std::int64_t i) const { return file + ":" + std::to_string(first_line + i); }
};

/// The source of the rows of a preparation, in a fixed order. One thread at a time.
class LineSource {
 public:
  virtual ~LineSource() = default;

  /// Replaces the block by the next lines of one file, at most `max_lines`; false at the end. How
  /// lines are divided into blocks depends on `max_lines` alone.
  virtual bool next(LineBlock& block, std::int64_t max_lines) = 0;

  /// Share of the source that has been read, in [0, 1].
  virtual double progress() const = 0;
};

}  // namespace satrap::prepare
