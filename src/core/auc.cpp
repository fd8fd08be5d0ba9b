#include "satrap/core/auc.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "satrap/core/error.h"

namespace satrap {
namespace {

constexpr int kDigitBits = 11;
constexpr int kNumDigits = 3;  // of the 32 bits of a score
constexpr std::size_t kNumBuckets = std::size_t{1} << kDigitBits;

/// A score as an unsigned number of the same order (equal for -0 and +0), with the label's bits
/// below it.
std::uint64_t pack(float score, float label) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return (static_cast<std::uint64_t>(ordered) << 32) | std::bit_cast<std::uint32_t>(label);
}

std::uint64_t score_of(std::uint64_t packed) { return packed >> 32; }
float label_of(std::uint64_t packed) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(packed));
}
std::size_t digit_of(std::uint64_t packed, int digit) {
  return (score_of(packed) >> (digit * kDigitBits)) & (kNumBuckets - 1);
}

/// Sorts by score (least significant digit first; the order among equal scores does not matter).
void sort_by_score(std::vector<std::uint64_t>& rows) {
  std::array<std::array<std::size_t, kNumBuckets>, kNumDigits> counts{};
  for (const std::uint64_t row : rows) {
    for (int d = 0; d < kNumDigits; ++d) ++counts[static_cast<std::size_t>(d)][digit_of(row, d)];
  }
  std::vector<std::uint64_t> sorted(rows.size());
  for (int d = 0; d < kNumDigits; ++d) {
    auto& next = counts[static_cast<std::size_t>(d)];
    std::size_t begin = 0;
    for (std::size_t& place : next) begin += std::exchange(place, begin);
    for (const std::uint64_t row : rows) sorted[next[digit_of(row, d)]++] = row;
    rows.swap(sorted);
  }
}

}  // namespace

double auc(std::span<const float> scores, std::span<const float> labels) {
  SATRAP_CHECK(scores.size() == labels.size(), "AUC of ", scores.size(), " scores and ",
               labels.size(), " labels");
  constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::uint64_t> rows(scores.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SATRAP_CHECK(labels[i] >= 0.0F && labels[i] <= 1.0F, "label ", i, " is ", labels[i]);
    if (std::isnan(scores[i])) return kUndefined;
    rows[i] = pack(scores[i], labels[i]);
  }
  sort_by_score(rows);

  double won = 0.0;  // pairs in which the positive scores higher, ties half
  double positives = 0.0, negatives = 0.0;
  for (std::size_t i = 0; i < rows.size();) {
    const std::uint64_t score = score_of(rows[i]);
    double tied_positives = 0.0, tied_negatives = 0.0;
    for (; i < rows.size() && score_of(rows[i]) == score; ++i) {
      const double label = static_cast<double>(label_of(rows[i]));
      tied_positives += label;
      tied_negatives += 1.0 - label;
    }
    won += tied_positives * (negatives + 0.5 * tied_negatives);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  if (positives <= 0.0 || negatives <= 0.0) return kUndefined;
  return won / (positives * negatives);
}

}  // namespace satrap
