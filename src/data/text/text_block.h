#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace satrap::data {

class ColumnMap;
struct MappedParquet;

/// Whether the line that begins here, and ends with '\n', is blank.
inline bool is_blank_line(const char* line) {
  return *line == '\n' || (*line == '\r' && line[1] == '\n');
}

/// Some whole rows of one file, each a line, or of some messages of one partition of a topic. The
/// text ends with '\n' and kPadding bytes after it may be read. Or rows of messages of columns.
struct TextBlock {
  static constexpr std::int64_t kPadding = 64;

  std::unique_ptr<char[]> buffer;  // [capacity + kPadding]
  std::int64_t capacity = 0;
  std::int64_t begin = 0;  // of the text within the buffer
  std::int64_t end = 0;

  char stand_in = 0;  // in the place of a line end within a field (QuotedLines); 0: there is none

  std::int64_t time_ms = -1;   // of messages, as ReadStats::time_ms
  std::int64_t num_lines = 0;  // rows
  std::int64_t first_row = 0;  // number of the first line within the epoch
  std::int64_t file_line = 0;  // the same within the file, from 1
  std::shared_ptr<const std::string> file;
  std::shared_ptr<const ColumnMap> layout;  // of this file's columns; null: there are
                                            // none, or all lines are blank

  struct Message {
    std::int64_t first_line = 0;  // of this block, from 0
    std::int64_t offset = 0;
  };
  std::int64_t partition = 0;  // of the messages
  std::vector<Message>
      messages;  // in their order, each of at least one line; empty: a file's lines

  /// Rows of a message of columns, which take the place of lines without a text.
  struct Columns {
    std::shared_ptr<const MappedParquet> source;  // null: the message cannot be read
    std::string fault = {};                       // then: why, and which it is
    std::int64_t first_line = 0;                  // as above, of its first row
    std::int64_t num_rows = 0;
    std::int64_t num_skipped = 0;  // of its first rows, which are not in the block
  };
  std::vector<Columns> columns;  // in the order of messages; empty: the block is text

  /// The place of a row of the block, for people: "log.csv:17", the line where it begins.
  std::string place_of(std::int64_t line) const;

  /// The place of a row of the block, for programs: the same in every pass over the data, and
  /// another one for every row.
  std::uint64_t position_of(std::int64_t line) const;

  /// How many line ends have a stand-in before `until`.
  std::int64_t num_stand_ins(const char* until) const;

  /// Makes of a copy of text of the block what it was.
  void restore_line_ends(char* from, char* to) const;

  const Message& message_of(std::int64_t line) const;

  const char* text_begin() const { return buffer.get() + begin; }
  const char* text_end() const { return buffer.get() + end; }

  /// Keeps the first `lines`, of at least as many; where those that it gives up begin. Columns keep
  /// their messages, whose further rows are not in the block.
  const char* keep_lines(std::int64_t lines);

  /// Makes room for `bytes`, keeping the first `kept` bytes of the buffer.
  void reserve(std::int64_t bytes, std::int64_t kept);
};

}  // namespace satrap::data
