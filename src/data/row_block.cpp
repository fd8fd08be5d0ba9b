#include "satrap/data/row_block.h"

#include <algorithm>

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

void RowBlock::drop_before(std::int64_t row) {
  std::int64_t dropped = 0;
  while (dropped < num_rows && row_number(dropped) < row) ++dropped;
  if (dropped == 0) return;
  const auto drop = [](auto& values, std::int64_t count) {
    values.erase(values.begin(), values.begin() + count);
  };
  first_row = dropped < num_rows ? row_number(dropped) : row;
  if (!row_numbers.empty()) drop(row_numbers, dropped);
  num_rows -= dropped;
  drop(labels, dropped * num_labels);
  for (std::vector<float>& column : numeric) drop(column, dropped);
  for (Bags& column : bags) {
    const std::int64_t ids_dropped = column.offsets[static_cast<std::size_t>(dropped)];
    drop(column.offsets, dropped);
    for (std::int64_t& offset : column.offsets) offset -= ids_dropped;
    drop(column.ids, ids_dropped);
    if (!column.weights.empty()) drop(column.weights, ids_dropped);
  }
  for (Texts& column : kept) {
    const std::int64_t end = column.ends[static_cast<std::size_t>(dropped) - 1];
    drop(column.bytes, end);
    drop(column.ends, dropped);
    for (std::int64_t& text_end : column.ends) text_end -= end;
  }
}

}  // namespace satrap::data
