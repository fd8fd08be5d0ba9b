#include "satrap/core/grouped_auc.h"

#include <cmath>

#include "src/core/grouped_rows.h"

namespace satrap {
namespace {

/// Share of pairs in the right order; NaN (0 / 0) without both classes. Rows ascend by score.
double auc_of(std::span<const GroupedRow> group) {
  double won = 0.0, positives = 0.0, negatives = 0.0;
  while (!group.empty()) {
    const auto tied =
        take_run(group, [&](const GroupedRow& row) { return row.score == group.front().score; });
    double tied_positives = 0.0, tied_negatives = 0.0;
    for (const GroupedRow& row : tied) {
      tied_positives += row.positive();
      tied_negatives += row.negative();
    }
    won += tied_positives * (negatives + 0.5 * tied_negatives);
    positives += tied_positives;
    negatives += tied_negatives;
    group = group.subspan(tied.size());
  }
  return won / (positives * negatives);
}

}  // namespace

GroupedAuc grouped_auc(std::span<const std::uint64_t> groups,
                       std::span<const float> scores,
                       std::span<const float> labels,
                       std::span<const float> weights) {
  GroupedAuc result;
  double sum = 0.0, sum_weights = 0.0;
  for_each_group(GroupedRows(groups, scores, labels, weights),
                 [&](std::span<const GroupedRow> group) {
                   const double auc = auc_of(group);
                   if (std::isnan(auc)) return;
                   double weight = 0.0;
                   for (const GroupedRow& row : group) weight += row.weight();
                   sum += auc * weight;
                   sum_weights += weight;
                   ++result.num_groups;
                 });
  if (result.num_groups > 0) result.auc = sum / sum_weights;
  return result;
}

}  // namespace satrap
