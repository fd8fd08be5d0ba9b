#include "satrap/data/row_block.h"

namespace satrap::data {

void RowBlock::clear(std::int64_t num_numeric,
                     std::int64_t num_id_columns,
                     std::int64_t num_label_columns) {
  num_rows = 0;
  first_row = 0;
  row_numbers.clear();
  num_labels = num_label_columns;
  labels.clear();
  numeric.resize(static_cast<std::size_t>(num_numeric));
  for (std::vector<float>& column : numeric) column.clear();
  bags.resize(static_cast<std::size_t>(num_id_columns));
  for (Bags& column : bags) {
    column.offsets.assign(1, 0);
    column.ids.clear();
    column.weights.clear();
  }
}

}  // namespace satrap::data
