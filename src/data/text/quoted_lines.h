#pragma once

#include <cstdint>

#include "satrap/data/schema.h"

namespace satrap::data {

/// Finds fields in quotes that have line ends (RFC 4180), and puts a stand-in in the place of these
/// line ends, so that a row is a line for all who look for lines. A quote opens a field only at its
/// beginning. One that is not closed within kMostBytes opens none: its line is a bad row, and the
/// next line is a row of its own. Used by one thread at a time.
class QuotedLines {
 public:
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;

  /// For files that are read so. By rule 1 of SchemaConfig::value_rule there are no such fields.
  explicit QuotedLines(const SchemaConfig& text);

  /// Takes the text [begin, end), which begins with a row. `is_all`: nothing follows it. `stand_in`
  /// is the stand-in of [block, begin), where one is; 0: there is none yet. It is set, and changed
  /// there, to a byte that [block, end) has not otherwise. If there is no such byte, line ends
  /// become spaces for good. Returns where the last whole row ends, behind its '\n', counted from
  /// `begin`; 0: there is none.
  std::int64_t join(char* block, char* begin, char* end, bool is_all, char& stand_in) const;

 private:
  char choose(char* block, char* begin, char* end, char& stand_in) const;
  const char* find_opening(const char* from, const char* begin, const char* end) const;
  const char* find_closing(const char* opening, const char* end) const;
  bool is_blank(char c) const { return trim_ && (c == ' ' || c == '\t') && c != delimiter_; }

  const char delimiter_, quote_;  // '\0': no quote
  const bool trim_;
};

}  // namespace satrap::data
