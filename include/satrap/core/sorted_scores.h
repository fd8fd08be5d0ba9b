#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace satrap {

/// Scores in ascending order, each with its label: 8 bytes per row, and 8 more while they are
/// sorted, in O(n) by radix sort. The order of rows with equal scores is not defined. -0 is 0.
class SortedScores {
 public:
  /// Scores that are not NaN, and any labels; both [n].
  SortedScores(std::span<const float> scores, std::span<const float> labels);

  std::size_t size() const { return rows_.size(); }
  float score(std::size_t i) const {
    const auto ordered = static_cast<std::uint32_t>(rows_[i] >> 32);
    return std::bit_cast<float>((ordered & kSign) != 0 ? ordered ^ kSign : ~ordered);
  }
  float label(std::size_t i) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(rows_[i]));
  }

 private:
  static constexpr std::uint32_t kSign = 0x80000000U;

  static std::uint64_t pack(float score, float label);

  // The score as an unsigned number of the same order (equal for -0 and +0), with the label's bits
  // below it.
  std::vector<std::uint64_t> rows_;
};

}  // namespace satrap
