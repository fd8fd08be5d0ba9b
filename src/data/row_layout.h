#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/schema.h"

namespace satrap::data {

/// What to do with each column of one file. Immutable.
class RowLayout {
 public:
  /// How a column is parsed. The first five have a parser that needs no look at the field's end
  /// first; it leaves anything unusual to the general one.
  enum class Kind : std::uint8_t { kSkip, kLabel, kNumber, kInt, kHex, kGeneral };

  struct Consumer {
    Kind kind;            // kLabel, kNumber, or kInt for ids of any type
    std::int64_t target;  // column of RowBlock::labels, numeric or bags
  };

  struct Column {
    std::string name;
    Kind kind = Kind::kSkip;
    std::int64_t target = 0;          // of all kinds but kSkip, kGeneral
    std::vector<Consumer> consumers;  // everybody who wants the column
  };

  /// `first_line` (without its '\n') is the header, or tells the number of columns: of a schema
  /// that names them and is not `labelled`, all, or those that are left without what only labels
  /// are made of. Throws Error(kInvalidConfig), naming `place` ("log.csv:1"), if there are others,
  /// or if a column of the schema is not there.
  RowLayout(const Schema& schema, std::string_view first_line, const std::string& place);

  const std::vector<Column>& columns() const { return columns_; }

 private:
  std::vector<Column> columns_;
};

/// Fields of a line, unquoted and trimmed as the schema says. The line must not have a '\n'.
std::vector<std::string> split_line(const SchemaConfig& text, std::string_view line);

}  // namespace satrap::data
