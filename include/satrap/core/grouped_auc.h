#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace satrap {

/// How well rows are ordered within their groups, such as the impressions of one user.
struct GroupedAuc {
  double auc = std::numeric_limits<double>::quiet_NaN();
  std::int64_t num_groups = 0;  // groups that are counted
};

/// The group of a row without one.
inline constexpr std::uint64_t kNoGroup = 0;

/// Mean of the groups' AUCs, each weighted by its number of rows (GAUC: Zhu et al. 2017, "Optimized
/// cost per click in Taobao display advertising", arXiv:1703.02091; Zhou et al. 2018, "Deep
/// interest network", arXiv:1706.06978). Groups with only positives or only negatives do not count,
/// nor do rows of kNoGroup. With weights a group's AUC is the weighted one, and counts with the sum
/// of its rows' weights; a row of weight 0 is not there. Exact, with the same bits in any order of
/// the rows; O(n log n), with 16 bytes per row for sorting.
///
/// NaN if no group counts or a score is NaN. Throws Error(kInternal) if the sizes differ, a label
/// is neither 0 nor 1, or a weight is negative or not finite.
GroupedAuc grouped_auc(std::span<const std::uint64_t> groups,
                       std::span<const float> scores,
                       std::span<const float> labels,         // all [n]
                       std::span<const float> weights = {});  // [n], or empty: each is 1

}  // namespace satrap
