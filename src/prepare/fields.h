#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace satrap::prepare {

/// The fields of a line, between delimiters; no quotes. Replaces `fields`.
void split_fields(std::string_view line,
                  std::string_view delimiter,
                  std::vector<std::string_view>& fields);

/// Throws Error(kInvalidData) unless there are `expected` fields.
void check_num_fields(const std::vector<std::string_view>& fields,
                      std::size_t expected,
                      const std::string& place);

/// A field as an integer. Throws Error(kInvalidData) naming the column and the place.
std::int64_t integer_field(std::string_view field,
                           std::string_view column,
                           const std::string& place);

/// The columns that a file names in its first line.
class Header {
 public:
  /// Throws Error(kIo) and Error(kInvalidData) if the file has no line.
  Header(const std::string& path, std::string_view delimiter);

  /// Position of a column, with spaces around its name or without. Throws Error(kInvalidData) if
  /// there is none.
  std::size_t at(std::string_view column) const;
  bool has(std::string_view column) const;

  /// Throws Error(kInvalidData) unless the header has these columns, in this order.
  void check(std::span<const std::string_view> columns) const;

  std::size_t size() const { return columns_.size(); }

 private:
  const std::string path_;
  std::vector<std::string> columns_;
};

/// Appends fields with tabs between them, and the end of the line.
void append_row(std::string& text, const std::vector<std::string_view>& fields);

}  // namespace satrap::prepare
