#include "src/prepare/fields.h"

#include <algorithm>
#include <optional>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/data/text_lines.h"

namespace satrap::prepare {
namespace {

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

void split_fields(std::string_view line,
                  std::string_view delimiter,
                  std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    const std::size_t end = line.find(delimiter);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + delimiter.size());
  }
}

void check_num_fields(const std::vector<std::string_view>& fields,
                      std::size_t expected,
                      const std::string& place) {
  if (fields.size() == expected) return;
  throw Error(ErrorCode::kInvalidData, concat(place, ": ", fields.size(), " columns, expected ",
                                              expected, "; is the file the published one?"));
}

std::int64_t integer_field(std::string_view field,
                           std::string_view column,
                           const std::string& place) {
  const std::optional<std::int64_t> number = parse_number<std::int64_t>(field);
  if (number) return *number;
  throw Error(ErrorCode::kInvalidData,
              concat(place, ": ", column, " must be an integer, got '", printable(field), "'"));
}

Header::Header(const std::string& path, std::string_view delimiter) : path_(path) {
  data::TextLines lines(path);
  std::string_view line;
  if (!lines.next(line)) throw Error(ErrorCode::kInvalidData, concat(path, ": has no line"));
  std::vector<std::string_view> fields;
  split_fields(line, delimiter, fields);
  for (const std::string_view field : fields) columns_.emplace_back(without_spaces(field));
}

bool Header::has(std::string_view column) const {
  return std::ranges::find(columns_, column) != columns_.end();
}

std::size_t Header::at(std::string_view column) const {
  const auto found = std::ranges::find(columns_, column);
  if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  throw Error(ErrorCode::kInvalidData, concat(path_, ":1: the header has no column '", column,
                                              "'; is the file the "
                                              "published one?"));
}

void Header::check(std::span<const std::string_view> columns) const {
  const auto [named, expected] = std::ranges::mismatch(columns_, columns);
  if (named != columns_.end() && expected != columns.end()) {
    throw Error(
        ErrorCode::kInvalidData,
        concat(path_, ":1: column ", named - columns_.begin() + 1, " of the header is '",
               printable(*named), "', expected '", *expected, "'; is the file the published one?"));
  }
  if (columns_.size() != columns.size()) {
    throw Error(ErrorCode::kInvalidData,
                concat(path_, ":1: the header has ", columns_.size(), " columns, expected ",
                       columns.size(), "; is the file the published one?"));
  }
}

void append_row(std::string& text, const std::vector<std::string_view>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) text.push_back('\t');
    text.append(fields[i]);
  }
  text.push_back('\n');
}

}  // namespace satrap::prepare
