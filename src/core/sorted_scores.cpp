#include "satrap/core/sorted_scores.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "satrap/core/error.h"

namespace satrap {
namespace {

constexpr int kDigitBits = 11;
constexpr int kNumDigits = 3;  // of the 32 bits of a score
constexpr std::size_t kNumBuckets = std::size_t{1} << kDigitBits;

std::size_t digit_of(std::uint64_t packed, int digit) {
  return ((packed >> 32) >> (digit * kDigitBits)) & (kNumBuckets - 1);
}

/// Sorts by score, least significant digit first.
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

SortedScores::SortedScores(std::span<const float> scores,
                           std::span<const float> labels,
                           std::span<const float> weights)
    : is_weighted_(!weights.empty()) {
  SATRAP_CHECK(scores.size() == labels.size(), scores.size(), " scores and ", labels.size(),
               " labels");
  if (is_weighted_) {
    sort_with(scores, labels, weights);
    return;
  }
  rows_.resize(scores.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = pack(scores[i], labels[i]);
  sort_by_score(rows_);
}

void SortedScores::sort_with(std::span<const float> scores,
                             std::span<const float> labels,
                             std::span<const float> weights) {
  SATRAP_CHECK(scores.size() == weights.size(), scores.size(), " scores and ", weights.size(),
               " weights");
  std::vector<std::pair<std::uint64_t, float>> rows;
  rows.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    SATRAP_CHECK(weights[i] >= 0.0F && std::isfinite(weights[i]), "weight ", i, " is ", weights[i]);
    if (weights[i] > 0.0F) rows.emplace_back(pack(scores[i], labels[i]), weights[i]);
  }
  std::ranges::sort(rows);
  rows_.reserve(rows.size());
  weights_.reserve(rows.size());
  for (const auto& [packed, weight] : rows) {
    rows_.push_back(packed);
    weights_.push_back(weight);
  }
}

std::uint64_t SortedScores::pack(float score, float label) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  const std::uint32_t ordered = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return (static_cast<std::uint64_t>(ordered) << 32) | std::bit_cast<std::uint32_t>(label);
}

}  // namespace satrap
