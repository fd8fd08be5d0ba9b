#include "satrap/core/grouped_ranking.h"

#include <algorithm>
#include <cstddef>

#include "satrap/core/error.h"
#include "satrap/core/portable_math.h"
#include "src/core/grouped_rows.h"

namespace satrap {
namespace {

/// Sums of the discounts of the first ranks; grows as far as it is asked.
class Discounts {
 public:
  double sum_of_first(std::size_t num_ranks) {
    while (sums_.size() <= num_ranks) {
      const auto rank = static_cast<double>(sums_.size());
      sums_.push_back(sums_.back() + kLog2 / portable_log(1.0 + rank));
    }
    return sums_[num_ranks];
  }

 private:
  static constexpr double kLog2 = 0x1.62e42fefa39efp-1;
  std::vector<double> sums_ = {0.0};
};

/// Rows of a group with equal scores, the highest first.
struct Tied {
  std::size_t rows = 0, positives = 0;
};

/// The ranking of one group with `positives`.
RankingAt ranking_of(std::span<const Tied> ties,
                     std::size_t positives,
                     std::int64_t at,
                     Discounts& discounts) {
  const auto k = static_cast<std::size_t>(at);
  double gain = 0.0, found = 0.0;
  std::size_t before = 0;  // rows that score higher
  for (const Tied& tied : ties) {
    if (before >= k) break;
    const std::size_t within = std::min(tied.rows, k - before);
    const double share = static_cast<double>(tied.positives) / static_cast<double>(tied.rows);
    gain += share * (discounts.sum_of_first(before + within) - discounts.sum_of_first(before));
    found += share * static_cast<double>(within);
    before += tied.rows;
  }
  const double best = discounts.sum_of_first(std::min(k, positives));
  return {.k = at, .ndcg = gain / best, .recall = found / static_cast<double>(positives)};
}

}  // namespace

GroupedRanking grouped_ranking(std::span<const std::uint64_t> groups,
                               std::span<const float> scores,
                               std::span<const float> labels,
                               std::span<const float> weights,
                               std::span<const std::int64_t> ks) {
  GroupedRanking result;
  std::vector<RankingAt> sums;
  for (const std::int64_t k : ks) {
    SATRAP_CHECK(k >= 1, "ranking of the first ", k, " rows");
    result.at.push_back({.k = k});
    sums.push_back({.k = k, .ndcg = 0.0, .recall = 0.0});
  }
  double sum_weights = 0.0;
  Discounts discounts;
  std::vector<Tied> ties;
  for_each_group(GroupedRows(groups, scores, labels, weights), [&](auto group) {
    ties.clear();
    std::size_t positives = 0;
    double weight = 0.0;
    for (std::size_t i = group.size(); i-- > 0;) {
      if (ties.empty() || group[i].score != group[i + 1].score) ties.emplace_back();
      ++ties.back().rows;
      const bool is_positive = group[i].signed_weight > 0.0F;
      ties.back().positives += is_positive ? 1 : 0;
      positives += is_positive ? 1 : 0;
      weight += group[i].weight();
    }
    if (positives == 0) return;
    weight /= static_cast<double>(group.size());
    ++result.num_groups;
    sum_weights += weight;
    for (RankingAt& sum : sums) {
      const RankingAt one = ranking_of(ties, positives, sum.k, discounts);
      sum.ndcg += weight * one.ndcg;
      sum.recall += weight * one.recall;
    }
  });
  if (result.num_groups == 0) return result;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    result.at[i].ndcg = sums[i].ndcg / sum_weights;
    result.at[i].recall = sums[i].recall / sum_weights;
  }
  return result;
}

}  // namespace satrap
