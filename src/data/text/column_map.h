#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/schema.h"

namespace satrap::data {

/// How each column of one file is used. Immutable.
class ColumnMap {
 public:
  /// How a column is parsed, or used (kText: kept as it is). The first five have a parser that need
  /// not find the field's end first; it leaves anything unusual to the general parser.
  enum class Kind : std::uint8_t { kSkip, kLabel, kNumber, kInt, kHex, kGeneral, kText, kTime };

  struct Consumer {
    Kind kind;            // kLabel, kNumber, kTime, kText, or kInt for ids of any type
    std::int64_t target;  // column of RowBlock::labels, numeric, kept or bags
  };

  struct Column {
    std::string name;
    Kind kind = Kind::kSkip;
    std::int64_t target = 0;          // of all kinds but kSkip, kGeneral
    std::vector<Consumer> consumers;  // all users of the column
  };

  /// `first_line` (without its '\n') is the header, or gives the number of columns: for a schema
  /// that names them and is not `labelled`, either all, or all but those that only labels use.
  /// Throws Error(kInvalidConfig), naming `place` ("log.csv:1"), for another number, or if a column
  /// of the schema is missing.
  ColumnMap(const Schema& schema, std::string_view first_line, const std::string& place);

  /// For a file that names its columns itself, `place`, and has all that the schema reads.
  ColumnMap(const Schema& schema, const std::vector<std::string>& names, const std::string& place);

  const std::vector<Column>& columns() const { return columns_; }

  /// The columns of Schema::selecting: places in columns().
  const std::vector<std::size_t>& selecting() const { return selecting_; }

 private:
  void find(const Schema& schema,
            const std::vector<std::string>& names,
            const std::string& place,
            const char* holder);

  std::vector<Column> columns_;
  std::vector<std::size_t> selecting_;
};

/// A column that the schema reads, for one use of it.
struct ColumnRead {
  std::string column;
  std::string reader;  // for people: "the label", "feature 'C1'"
  ColumnMap::Consumer consumer;
};

/// All of them but Schema::selecting; the columns of one feature follow each other.
std::vector<ColumnRead> reads_of(const Schema& schema);

/// Fields of a line, unquoted and trimmed by the schema. The line must not have a '\n'.
std::vector<std::string> split_line(const SchemaConfig& text, std::string_view line);

}  // namespace satrap::data
