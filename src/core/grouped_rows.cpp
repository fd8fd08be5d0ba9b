#include "src/core/grouped_rows.h"

#include <cmath>
#include <tuple>

#include "satrap/core/error.h"
#include "satrap/core/grouped_auc.h"

namespace satrap {

GroupedRows::GroupedRows(std::span<const std::uint64_t> groups,
                         std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const float> weights) {
  SATRAP_CHECK(groups.size() == scores.size() && scores.size() == labels.size() &&
                   (weights.empty() || weights.size() == labels.size()),
               groups.size(), " groups, ", scores.size(), " scores, ", labels.size(),
               " labels and ", weights.size(), " weights");
  rows.reserve(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const float weight = weights.empty() ? 1.0F : weights[i];
    SATRAP_CHECK(weight >= 0.0F && std::isfinite(weight), "weight ", i, " is ", weight);
    if (weight == 0.0F) continue;
    SATRAP_CHECK(labels[i] == 0.0F || labels[i] == 1.0F, "label ", i, " is ", labels[i]);
    has_nan = has_nan || std::isnan(scores[i]);
    const float signed_weight = labels[i] == 1.0F ? weight : -weight;
    if (groups[i] != kNoGroup) rows.push_back({groups[i], scores[i], signed_weight});
  }
  if (has_nan) rows.clear();
  std::ranges::sort(rows, {}, [](const GroupedRow& row) {
    return std::tuple(row.group, row.score, row.signed_weight);
  });
}

}  // namespace satrap
