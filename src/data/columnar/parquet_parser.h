#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/columnar/parquet_groups.h"
#include "src/data/columnar/single_ids.h"
#include "src/data/columnar/value_text.h"
#include "src/data/rows/row_filler.h"
#include "src/data/text/block_parser.h"
#include "src/data/text/field_reader.h"

namespace satrap::data {

/// Turns the columns of Parquet into blocks of rows. A value means what its text would mean in a
/// field of CSV, but that texts are taken as they are, a null is a missing value, and lists are the
/// elements of a bag. What is frequent does not go by way of a text, and each text of a dictionary
/// is hashed once. One thread at a time; the schema must outlive the parser.
class ParquetParser {
 public:
  ParquetParser(const Schema& schema, const RowPass& pass);
  ParquetParser(const ParquetParser&) = delete;
  ParquetParser& operator=(const ParquetParser&) = delete;

  /// The following calls parse this row group.
  void begin(const ParquetGroup& group);

  /// Replaces `rows` and `bad` by those of rows first_row ... first_row + num_rows - 1 of the
  /// epoch, whose values are [columns of the source]; rows outside the pass are skipped.
  void parse(std::span<const ParquetValues> values,
             std::int64_t first_row,
             std::int64_t num_rows,
             RowBlock& rows,
             BadRows& bad);

 private:
  /// How a value is taken. All but the last leave anything unusual to it.
  enum class Way : std::uint8_t { kLabel, kNumberLabel, kNumber, kTime, kId, kIds, kGeneral };

  struct Column {
    const ColumnMap::Column* use;
    ParquetFile::Kind kind;
    bool is_list;
    Way way;
    std::int64_t target;           // unless kGeneral
    const FeatureConfig* feature;  // of kId, kIds
    const ParquetValues* values = nullptr;
    SingleIds ids = {};                // of the block, of kId
    std::vector<double> numbers = {};  // the same, of kNumberLabel, kNumber, kTime; NaN: missing
    bool is_usual = false;             // no value of the block is left to kGeneral

    bool only_selects() const { return use->consumers.empty(); }
    bool is_null(std::size_t element) const {
      if (!values->presence.empty() && values->presence[element] == 0) return true;
      return (kind == ParquetFile::Kind::kDouble && std::isnan(values->doubles[element])) ||
             (kind == ParquetFile::Kind::kFloat && std::isnan(values->floats[element]));
    }
  };

  Way way_of(const ColumnMap::Column& use, const ParquetFile::Column& column) const;
  bool is_of_pass(std::int64_t row) const;
  std::uint64_t position_of(std::int64_t row) const;  // as TextBlock::position_of
  FieldFound find_selecting(std::size_t place, std::size_t at, std::string_view& text);
  void select(std::int64_t first_row, std::size_t num_rows, BadRows& bad);
  bool parse_row(std::size_t row);
  bool take(Column& column, std::size_t row);
  bool take_integers(const Column& column, std::size_t row);
  bool take_any(const Column& column, std::size_t row);
  void prepare(Column& column, std::size_t num_rows);
  bool find_times(Column& column, std::size_t num_rows);
  bool is_usual(std::int64_t first_row, std::int64_t num_rows) const;
  void put_columns(std::size_t num_rows, RowBlock& rows);
  std::string_view text_of(const Column& column, std::size_t element);
  std::vector<std::string> kept_of(std::size_t row);
  void report(std::int64_t row, BadRows& bad) const;

  const Schema& schema_;
  const RowPass pass_;
  ParquetGroup group_;
  std::vector<Column> columns_;
  std::vector<std::size_t> selecting_;  // places of Schema::selecting in columns_
  std::vector<bool> is_selected_;       // [rows of the block], if the pass has a selection
  bool are_all_selected_ = true;
  RowFiller row_;
  FieldReader fields_;
  NumberText digits_;
};

}  // namespace satrap::data
