#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/rows/row_filler.h"
#include "src/data/text/block_parser.h"
#include "src/data/text/column_map.h"
#include "src/data/text/field_reader.h"
#include "src/data/text/text_block.h"

namespace satrap::data {

/// Parses text in columns, whose fields are parsed in place. The schema must outlive the parser.
class RowParser : public BlockParser {
 public:
  RowParser(const Schema& schema, const RowPass& pass);
  RowParser(const RowParser&) = delete;
  RowParser& operator=(const RowParser&) = delete;

  void parse(const TextBlock& text, RowBlock& rows, BadRows& bad) override;

  // For parse_lines, which describes them:
  bool is_blank(const char* line) const { return is_blank_line(line); }
  FieldFound find_selecting(const char* line, std::size_t place, std::string_view& text);
  const char* parse_row(const char* p);
  std::vector<std::string> kept_of(const char* line, const char* end) const;
  void report(const TextBlock& text, const char* line, std::int64_t line_of_block, BadRows& bad);

 private:
  const Schema& schema_;
  const RowPass pass_;
  const char delimiter_;
  const bool has_quotes_;

  const ColumnMap* layout_ = nullptr;  // of the block that is parsed, as text_
  const TextBlock* text_ = nullptr;
  RowFiller row_;
  FieldReader fields_;
  RowFault fault_;  // of the row that was parsed last, if it is a bad one
};

}  // namespace satrap::data
