#pragma once

#include <cstdint>
#include <vector>

#include "satrap/data/texts.h"

namespace satrap::data {

/// Raw values of consecutive rows from a parser or the generator: before numeric transforms, and
/// before rows are grouped into batches. Columnar, so that batches are made by copying ranges.
/// Column order is the schema's.
struct RowBlock {
  /// The ids of one categorical column: one bag per row.
  struct Bags {
    std::vector<std::int64_t> offsets;  // [num_rows + 1], ascending from 0
    std::vector<std::uint64_t> ids;     // [offsets.back()]
    std::vector<float> weights;         // [offsets.back()], or empty: every weight is 1
  };

  std::int64_t num_rows = 0;
  std::int64_t first_row = 0;             // number of the first row within the epoch (all ranks)
  std::vector<std::int64_t> row_numbers;  // [num_rows] ascending, number of each row within the
                                          // epoch; empty: first_row, first_row + 1, ...
  std::int64_t rows_read = 0;             // of shuffled rows: the number of the first one that had
                                          // not been taken into the buffer when they left it
  std::int64_t num_labels = 1;
  std::vector<float> labels;  // [num_rows, num_labels] row-major, as LabelConfig::allows says; of
                              // several one may be missing, NaN
  std::vector<std::vector<double>> numeric;  // [num_numeric][num_rows]; NaN: missing
  std::vector<Bags> bags;                    // [num_id_columns]
  std::vector<Texts> kept;                   // [schema.kept] of num_rows each

  /// Empties the block for reuse, keeping the memory, with the given numbers of columns.
  void clear(std::int64_t num_numeric,
             std::int64_t num_id_columns,
             std::int64_t num_label_columns = 1);

  /// Removes the rows whose numbers are below `row`.
  void drop_before(std::int64_t row);

  /// Adds the rows of a later block with the same columns. Both have row_numbers.
  void append(const RowBlock& later);

  /// Removes all rows but the first `rows`, of at least as many.
  void truncate(std::int64_t rows);

  /// Number within the epoch of row r of the block.
  std::int64_t row_number(std::int64_t r) const {
    return row_numbers.empty() ? first_row + r : row_numbers[static_cast<std::size_t>(r)];
  }
};

}  // namespace satrap::data
