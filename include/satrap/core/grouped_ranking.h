#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace satrap {

/// How well the first k rows of each group, by descending score, show its positives.
struct RankingAt {
  std::int64_t k = 0;
  double ndcg = std::numeric_limits<double>::quiet_NaN();
  double recall = std::numeric_limits<double>::quiet_NaN();
};

struct GroupedRanking {
  std::vector<RankingAt> at;    // of each k, in their order
  std::int64_t num_groups = 0;  // groups that are counted: those with a positive
};

/// Means over the groups with a positive of
///  - NDCG@k: the sum of 1 / log2(1 + rank) over the positives of rank <= k, divided by the largest
///    that it could be (Järvelin, Kekäläinen 2002; ndcg_score of scikit-learn);
///  - recall@k: the share of the group's positives whose rank is <= k.
/// Both are the mean over all orders of rows with equal scores. So the order of the rows changes no
/// bit. Rows of kNoGroup do not count.
///
/// With weights a group counts with the mean weight of its rows, as in LightGBM; ranks count rows,
/// and a row of weight 0 is not there.
///
/// NaN if no group counts or a score is NaN. Each k is >= 1. O(n log n), with 16 bytes per row.
/// Throws as grouped_auc.
GroupedRanking grouped_ranking(std::span<const std::uint64_t> groups,
                               std::span<const float> scores,
                               std::span<const float> labels,   // all [n]
                               std::span<const float> weights,  // [n], or empty: each is 1
                               std::span<const std::int64_t> ks);

}  // namespace satrap
