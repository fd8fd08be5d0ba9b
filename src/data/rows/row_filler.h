#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/hash.h"
#include "satrap/data/row_block.h"
#include "satrap/data/schema.h"

namespace satrap::data {

inline constexpr double kMissingNumber = std::numeric_limits<double>::quiet_NaN();

/// The id that stands for a missing value where the schema says `missing: own_id`.
inline constexpr std::uint64_t kMissingId = 0x6D697373696E67ULL;  // "missing"; below 2^54

/// Puts rows into a block, one after the other: values of the open row at their columns, then
/// end_row(). What is put of a row that is dropped instead is overwritten by the next one. The
/// schema must outlive it, and the block what is done between begin() and finish().
class RowFiller {
 public:
  explicit RowFiller(const Schema& schema);

  /// Makes room for `max_rows` rows. Vectors only ever shrink to what was filled, so that growing
  /// them again touches little.
  void begin(RowBlock& rows, std::int64_t max_rows);

  // The open row:
  float& label(std::int64_t target) {
    return rows_->labels[row_ * num_labels_ + static_cast<std::size_t>(target)];
  }
  double& number(std::int64_t target) { return numbers_[static_cast<std::size_t>(target)][row_]; }
  std::int64_t num_ids(std::int64_t target) const {
    const Bags& bags = bags_[static_cast<std::size_t>(target)];
    return bags.size - bags.offsets[row_];
  }
  /// The only id of the row, in a column without weights.
  void put_id(std::int64_t target, std::uint64_t id) {
    Bags& bags = bags_[static_cast<std::size_t>(target)];
    bags.ids[bags.size++] = id;
  }
  /// Any other.
  void push_id(std::int64_t target, std::uint64_t id, float weight) {
    Bags& bags = bags_[static_cast<std::size_t>(target)];
    if (bags.size == bags.capacity) grow(target);
    if (bags.weights != nullptr) bags.weights[bags.size] = weight;
    bags.ids[bags.size++] = id;
  }
  void keep_last_ids(std::int64_t target, std::int64_t limit);  // of the row
  void put_text(std::int64_t target, std::string_view text);    // of a kept column

  /// False: training leaves out the open row. It is a negative that is not read, or learns nothing
  /// from it: its weight is 0, or all of its labels are missing. `position()` is the same in every
  /// pass and on every rank, and another one for every row.
  template <class Position>
  bool is_wanted(const Position& position) const {
    if (!may_be_unwanted_) return true;
    return teaches() && (reads_all_negatives_ || !is_negative() || is_read(position()));
  }

  void end_row(std::int64_t row_number) {
    for (Bags& bags : bags_) bags.offsets[row_ + 1] = bags.size;
    rows_->row_numbers[row_] = row_number;
    ++row_;
  }
  /// Ends all rows at once, whose values are in the block: labels, numbers, and offsets and ids of
  /// bags without weights. No row is open or ended.
  void end_rows(std::int64_t first_row, std::int64_t num_rows);
  void drop_row();
  /// `texts`: of the kept columns, as far as they are known.
  void add_row_without_values(std::int64_t row_number, std::span<const std::string> texts = {});

  void finish();

 private:
  static constexpr std::uint64_t kNegativeStream = 0x6E65676174697665;  // "negative"

  /// The place of the next id of a column, without a way through the block's vectors.
  struct Bags {
    std::uint64_t* ids;
    std::int64_t* offsets;
    float* weights;     // null: there are none
    std::int64_t size;  // ids so far
    std::int64_t capacity;
  };

  bool teaches() const;
  bool is_negative() const;
  bool is_read(std::uint64_t position) const {
    return hash64(kNegativeStream, position) < negatives_below_;
  }
  std::span<const float> labels() const {
    return std::span(rows_->labels).subspan(row_ * num_labels_, num_labels_);
  }
  void grow(std::int64_t target);
  void locate(std::size_t column);

  const Schema& schema_;
  const std::size_t num_labels_;
  const bool reads_all_negatives_;
  const std::uint64_t negatives_below_;  // hashes of the positions of those that are read
  const bool may_be_unwanted_;

  RowBlock* rows_ = nullptr;
  std::size_t row_ = 0;           // rows ended
  std::vector<double*> numbers_;  // [schema.raw_numeric]
  std::vector<Bags> bags_;        // [schema.id_columns]
};

}  // namespace satrap::data
