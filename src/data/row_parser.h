#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/column_map.h"
#include "src/data/field_reader.h"
#include "src/data/row_filler.h"
#include "src/data/text_block.h"

namespace satrap::data {

/// Rows of a block that could not be parsed.
struct BadRows {
  static constexpr std::size_t kMaxMessages = 10;

  std::int64_t count = 0;
  std::vector<std::string> messages;  // of the first ones: "file:line: column 'I3': expected ..."
  std::map<std::string, std::int64_t> reasons;  // how many for which: "column 'I3': expected ..."
};

/// Parses blocks of text into blocks of rows. Fields are parsed in place; nothing
/// is allocated per row. One thread at a time; the schema must outlive the parser.
class RowParser {
 public:
  RowParser(const Schema& schema, const RowPass& pass);
  RowParser(const RowParser&) = delete;
  RowParser& operator=(const RowParser&) = delete;

  /// Replaces `rows` and `bad`. Lines outside the pass are counted and skipped; blank lines and
  /// rows with an error are omitted from `rows` unless the pass keeps every line.
  void parse(const TextBlock& text, RowBlock& rows, BadRows& bad);

 private:
  bool is_in_part(const char* line, std::int64_t row);
  const char* parse_row(const char* p);
  std::vector<std::string> kept_of(std::string_view line) const;
  void report(const TextBlock& text, const char* line, std::int64_t line_of_block, BadRows& bad);

  const Schema& schema_;
  const RowPass pass_;
  const char delimiter_;
  const bool has_quotes_;

  const ColumnMap* layout_ = nullptr;
  RowFiller row_;
  FieldReader fields_;
  RowFault fault_;  // of the row that was parsed last, if it is a bad one
};

}  // namespace satrap::data
