#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace satrap {

/// Scores in ascending order, each with its label: 8 bytes per row, and 8 more while they are
/// sorted, in O(n) by radix sort. The order of rows with equal scores is not defined. -0 is 0.
///
/// With weights: rows of weight 0 are left out, and equal scores ascend by label and weight, so
/// that sums over the rows have the same bits in whatever order they came. 12 bytes per row, and 16
/// more while they are sorted, in O(n log n).
class SortedScores {
 public:
  /// Scores that are not NaN where the weight is not 0, and any labels, both [n]. `weights`: [n],
  /// or empty: each is 1. Throws Error(kInternal) if the sizes differ, or a weight is negative or
  /// not finite.
  SortedScores(std::span<const float> scores,
               std::span<const float> labels,
               std::span<const float> weights = {});

  std::size_t size() const { return rows_.size(); }
  float score(std::size_t i) const {
    const auto ordered = static_cast<std::uint32_t>(rows_[i] >> 32);
    return std::bit_cast<float>((ordered & kSign) != 0 ? ordered ^ kSign : ~ordered);
  }
  float label(std::size_t i) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(rows_[i]));
  }
  bool is_weighted() const { return is_weighted_; }
  double weight(std::size_t i) const {
    return is_weighted_ ? static_cast<double>(weights_[i]) : 1.0;
  }

 private:
  static constexpr std::uint32_t kSign = 0x80000000U;

  static std::uint64_t pack(float score, float label);
  void sort_with(std::span<const float> scores,
                 std::span<const float> labels,
                 std::span<const float> weights);

  // The score as an unsigned number of the same order (equal for -0 and +0), with the label's bits
  // below it.
  std::vector<std::uint64_t> rows_;
  std::vector<float> weights_;  // of rows_, if it is weighted
  bool is_weighted_ = false;
};

}  // namespace satrap
