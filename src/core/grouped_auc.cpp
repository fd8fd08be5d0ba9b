#include "satrap/core/grouped_auc.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "satrap/core/error.h"

namespace satrap {
namespace {

struct Row {
  std::uint64_t group;
  float score;
  bool is_positive;
};

struct Count {
  double positives = 0.0, negatives = 0.0;
  void add(const Row& row) { (row.is_positive ? positives : negatives) += 1.0; }
};

using Rows = std::span<const Row>;

/// The leading rows that agree with the first one.
template <class Same>
Rows take_run(Rows rows, const Same& same) {
  const auto end = std::ranges::find_if_not(rows, same);
  return rows.first(static_cast<std::size_t>(end - rows.begin()));
}

/// Share of pairs in the right order; NaN (0 / 0) without both classes. Rows ascend by score.
double auc_of(Rows group) {
  Count below;
  double won = 0.0;
  while (!group.empty()) {
    const Rows tied =
        take_run(group, [&](const Row& row) { return row.score == group.front().score; });
    Count here;
    for (const Row& row : tied) here.add(row);
    won += here.positives * (below.negatives + 0.5 * here.negatives);
    below.positives += here.positives;
    below.negatives += here.negatives;
    group = group.subspan(tied.size());
  }
  return won / (below.positives * below.negatives);
}

}  // namespace

GroupedAuc grouped_auc(std::span<const std::uint64_t> groups,
                       std::span<const float> scores,
                       std::span<const float> labels) {
  SATRAP_CHECK(groups.size() == scores.size() && scores.size() == labels.size(), "grouped AUC of ",
               groups.size(), " groups, ", scores.size(), " scores and ", labels.size(), " labels");
  GroupedAuc result;
  std::vector<Row> rows;
  rows.reserve(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    SATRAP_CHECK(labels[i] == 0.0F || labels[i] == 1.0F, "label ", i, " is ", labels[i]);
    if (std::isnan(scores[i])) return result;
    if (groups[i] != kNoGroup) rows.push_back({groups[i], scores[i], labels[i] == 1.0F});
  }
  std::ranges::sort(rows, {}, [](const Row& row) { return std::tuple(row.group, row.score); });

  double sum = 0.0, num_rows = 0.0;
  for (Rows rest = rows; !rest.empty();) {
    const Rows group =
        take_run(rest, [&](const Row& row) { return row.group == rest.front().group; });
    rest = rest.subspan(group.size());
    const double auc = auc_of(group);
    if (std::isnan(auc)) continue;
    sum += auc * static_cast<double>(group.size());
    num_rows += static_cast<double>(group.size());
    ++result.num_groups;
  }
  if (result.num_groups > 0) result.auc = sum / num_rows;
  return result;
}

}  // namespace satrap
