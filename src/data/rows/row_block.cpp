#include "satrap/data/row_block.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

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
  for (std::vector<double>& column : numeric) column.clear();
  bags.resize(static_cast<std::size_t>(num_id_columns));
  for (Bags& column : bags) {
    column.offsets.assign(1, 0);
    column.ids.clear();
    column.weights.clear();
  }
}

void RowBlock::append(const RowBlock& later) {
  const auto add = [](auto& values, const auto& more) {
    values.insert(values.end(), more.begin(), more.end());
  };
  const auto add_ends = [](std::vector<std::int64_t>& ends, auto first, auto last, auto before) {
    std::transform(first, last, std::back_inserter(ends), [&](auto end) { return before + end; });
  };
  if (num_rows == 0) first_row = later.first_row;
  num_rows += later.num_rows;
  add(row_numbers, later.row_numbers);
  add(labels, later.labels);
  for (std::size_t i = 0; i < numeric.size(); ++i) add(numeric[i], later.numeric[i]);
  for (std::size_t i = 0; i < bags.size(); ++i) {
    const std::vector<std::int64_t>& offsets = later.bags[i].offsets;
    add_ends(bags[i].offsets, offsets.begin() + 1, offsets.end(), bags[i].offsets.back());
    add(bags[i].ids, later.bags[i].ids);
    add(bags[i].weights, later.bags[i].weights);
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::vector<std::int64_t>& ends = later.kept[i].ends;
    add_ends(kept[i].ends, ends.begin(), ends.end(), std::ssize(kept[i].bytes));
    kept[i].bytes += later.kept[i].bytes;
  }
}

void RowBlock::truncate(std::int64_t rows) {
  const auto size = static_cast<std::size_t>(rows);
  num_rows = rows;
  row_numbers.resize(size);
  labels.resize(size * static_cast<std::size_t>(num_labels));
  for (std::vector<double>& column : numeric) column.resize(size);
  for (Bags& column : bags) {
    column.offsets.resize(size + 1);
    column.ids.resize(static_cast<std::size_t>(column.offsets.back()));
    if (!column.weights.empty()) column.weights.resize(column.ids.size());
  }
  for (Texts& column : kept) column.resize(size);
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
  for (std::vector<double>& column : numeric) drop(column, dropped);
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
