#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "satrap/core/hash.h"

namespace satrap::data {

/// One of the two parts of files whose rows are for training and for evaluation. Which part a row
/// is in follows from one text of the row alone: it is the same in every pass and on every rank.
class RowPart {
 public:
  /// The rows of evaluation, about `fraction` (below 1) of all; or else the others.
  RowPart(double fraction, bool is_evaluation)
      : limit_(static_cast<std::uint64_t>(std::ldexp(fraction, 64))),
        is_evaluation_(is_evaluation) {}

  /// Differs between parts that differ, of the same role.
  std::string identity() const { return std::to_string(limit_); }

  /// `text`: the row's field in the column that divides the rows, or else its number in decimal.
  bool has(std::string_view text) const { return (hash_bytes(text) < limit_) == is_evaluation_; }

 private:
  std::uint64_t limit_;
  bool is_evaluation_;
};

}  // namespace satrap::data
