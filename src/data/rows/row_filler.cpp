#include "src/data/rows/row_filler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace satrap::data {

RowFiller::RowFiller(const Schema& schema)
    : schema_(schema),
      num_labels_(schema.labels.size()),
      reads_all_negatives_(schema.negatives_read >= 1.0),
      negatives_below_(reads_all_negatives_
                           ? 0
                           : static_cast<std::uint64_t>(std::ldexp(schema.negatives_read, 64))),
      may_be_unwanted_(schema.of_training &&
                       (schema.weight >= 0 || num_labels_ > 1 || !reads_all_negatives_)) {}

bool RowFiller::teaches() const {
  if (schema_.weight >= 0 && numbers_[static_cast<std::size_t>(schema_.weight)][row_] == 0.0) {
    return false;
  }
  return std::ranges::any_of(labels(), [](float label) { return !std::isnan(label); });
}

bool RowFiller::is_negative() const {
  return std::ranges::none_of(labels(), [](float label) { return label == 1.0F; });
}

void RowFiller::begin(RowBlock& rows, std::int64_t max_rows) {
  const auto lines = static_cast<std::size_t>(max_rows);
  rows_ = &rows;
  row_ = 0;
  rows.num_labels = schema_.num_labels();
  rows.labels.resize(lines * num_labels_);
  if (!schema_.labelled) std::fill(rows.labels.begin(), rows.labels.end(), 0.0F);
  rows.row_numbers.resize(lines);
  rows.numeric.resize(schema_.raw_numeric.size());
  numbers_.clear();
  for (std::vector<double>& column : rows.numeric) {
    column.resize(lines);
    numbers_.push_back(column.data());
  }
  rows.bags.resize(schema_.id_columns.size());
  bags_.assign(rows.bags.size(), {});
  for (std::size_t i = 0; i < rows.bags.size(); ++i) {
    RowBlock::Bags& bags = rows.bags[i];
    bags.offsets.resize(lines + 1);
    bags.offsets[0] = 0;
    if (bags.ids.size() < lines) bags.ids.resize(lines);
    const bool weighted = !schema_.id_columns[i].config.weight_separator.empty();
    bags.weights.resize(weighted ? bags.ids.size() : 0);
    locate(i);
  }
  rows.kept.resize(schema_.kept.size());
  for (Texts& texts : rows.kept) texts.clear();
}

void RowFiller::locate(std::size_t column) {
  RowBlock::Bags& bags = rows_->bags[column];
  bags_[column] = {.ids = bags.ids.data(),
                   .offsets = bags.offsets.data(),
                   .weights = bags.weights.empty() ? nullptr : bags.weights.data(),
                   .size = bags_[column].size,
                   .capacity = std::ssize(bags.ids)};
}

void RowFiller::grow(std::int64_t target) {
  const auto column = static_cast<std::size_t>(target);
  RowBlock::Bags& bags = rows_->bags[column];
  const bool weighted = bags_[column].weights != nullptr;
  bags.ids.resize(bags.ids.size() * 2 + 16);
  if (weighted) bags.weights.resize(bags.ids.size());
  locate(column);
}

void RowFiller::keep_last_ids(std::int64_t target, std::int64_t limit) {
  const std::int64_t excess = num_ids(target) - limit;
  if (excess <= 0) return;
  const auto at = static_cast<std::size_t>(target);
  RowBlock::Bags& bags = rows_->bags[at];
  const auto first = static_cast<std::ptrdiff_t>(bags.offsets[row_]);
  const auto size = static_cast<std::ptrdiff_t>(bags_[at].size);
  std::copy(bags.ids.begin() + first + excess, bags.ids.begin() + size, bags.ids.begin() + first);
  if (!bags.weights.empty()) {
    std::copy(bags.weights.begin() + first + excess, bags.weights.begin() + size,
              bags.weights.begin() + first);
  }
  bags_[at].size -= excess;
}

void RowFiller::put_text(std::int64_t target, std::string_view text) {
  rows_->kept[static_cast<std::size_t>(target)].push(text);
}

void RowFiller::end_rows(std::int64_t first_row, std::int64_t num_rows) {
  row_ = static_cast<std::size_t>(num_rows);
  std::iota(rows_->row_numbers.begin(), rows_->row_numbers.end(), first_row);
}

void RowFiller::drop_row() {
  for (Texts& texts : rows_->kept) texts.resize(row_);
  for (Bags& bags : bags_) bags.size = bags.offsets[row_];
}

void RowFiller::add_row_without_values(std::int64_t row_number,
                                       std::span<const std::string> texts) {
  for (std::size_t i = 0; i < rows_->kept.size(); ++i) {
    rows_->kept[i].push(i < texts.size() ? std::string_view(texts[i]) : std::string_view());
  }
  std::fill_n(&label(0), num_labels_, std::numeric_limits<float>::quiet_NaN());
  for (std::vector<double>& column : rows_->numeric) column[row_] = kMissingNumber;
  end_row(row_number);
}

void RowFiller::finish() {
  RowBlock& rows = *rows_;
  rows.num_rows = static_cast<std::int64_t>(row_);
  rows.first_row = 0;
  rows.labels.resize(row_ * num_labels_);
  rows.row_numbers.resize(row_);
  if (row_ > 0) rows.first_row = rows.row_numbers.front();
  for (std::vector<double>& column : rows.numeric) column.resize(row_);
  for (RowBlock::Bags& bags : rows.bags) {
    bags.offsets.resize(row_ + 1);
    const auto size = static_cast<std::size_t>(bags.offsets.back());
    bags.ids.resize(size);
    if (!bags.weights.empty()) bags.weights.resize(size);
  }
}

}  // namespace satrap::data
