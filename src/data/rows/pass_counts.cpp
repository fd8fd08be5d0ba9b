#include "src/data/rows/pass_counts.h"

#include <algorithm>
#include <utility>

#include "src/data/rows/row_selection.h"

namespace satrap::data {

PassCounts::PassCounts(const RowPass& pass,
                       std::int64_t total_bytes,
                       std::shared_ptr<BadRowPolicy> bad_rows)
    : total_bytes_(total_bytes),
      has_all_rows_(pass.first_row == 0),
      max_rows_(pass.max_rows),
      part_share_(pass.selection ? pass.selection->part_share() : 1.0),
      bad_rows_(std::move(bad_rows)) {}

void PassCounts::add(const BadRows& bad, std::int64_t num_good) {
  bad_rows_->add(bad, num_good);
  num_good_ += num_good;
  num_others_ += bad.count + bad.left_out;
}

void PassCounts::end_pass() { bad_rows_->end_pass(has_all_rows_); }

ReadStats PassCounts::stats(std::int64_t bytes, std::int64_t rows) const {
  // A large file has been read in part, but few small ones as a whole.
  double epoch_rows = 0.0;
  if (total_bytes_ > 0 && bytes > 0) {
    epoch_rows =
        static_cast<double>(rows) * static_cast<double>(total_bytes_) / static_cast<double>(bytes);
    if (max_rows_ > 0) epoch_rows = std::min(epoch_rows, static_cast<double>(max_rows_));
    const auto good = static_cast<double>(num_good_), others = static_cast<double>(num_others_);
    if (good > 0.0) epoch_rows *= good / (good + others);
  }
  return {.rows = 0,
          .bad_rows = bad_rows_->count(),
          .left_out = bad_rows_->left_out(),
          .bytes = bytes,
          .total_bytes = total_bytes_,
          .epoch_rows = epoch_rows};
}

}  // namespace satrap::data
