#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace satrap {

/// A row of a group, for metrics within groups.
struct GroupedRow {
  std::uint64_t group;
  float score;
  float signed_weight;  // > 0: of a positive; < 0: minus that of a negative
  double weight() const {
    return static_cast<double>(signed_weight < 0.0F ? -signed_weight : signed_weight);
  }
  double positive() const {
    return signed_weight > 0.0F ? static_cast<double>(signed_weight) : 0.0;
  }
  double negative() const {
    return signed_weight < 0.0F ? -static_cast<double>(signed_weight) : 0.0;
  }
};

/// The rows that have a group and a weight above 0, by ascending group and score; equal ones by
/// weight, so that sums have the same bits in whatever order the rows came.
struct GroupedRows {
  /// All [n]; `weights` may be empty: each is 1. Throws Error(kInternal) if the sizes differ, a
  /// weight is negative or not finite, or the label of such a row is neither 0 nor 1.
  GroupedRows(std::span<const std::uint64_t> groups,
              std::span<const float> scores,
              std::span<const float> labels,
              std::span<const float> weights);

  std::vector<GroupedRow> rows;
  bool has_nan = false;  // a score of a row with a weight is; then there are no rows
};

/// The leading rows for which `same` holds.
template <class Same>
std::span<const GroupedRow> take_run(std::span<const GroupedRow> rows, const Same& same) {
  const auto end = std::ranges::find_if_not(rows, same);
  return rows.first(static_cast<std::size_t>(end - rows.begin()));
}

/// Calls `take` with the rows of each group.
template <class Take>
void for_each_group(const GroupedRows& all, const Take& take) {
  for (std::span<const GroupedRow> rest = all.rows; !rest.empty();) {
    const auto group =
        take_run(rest, [&](const GroupedRow& row) { return row.group == rest.front().group; });
    rest = rest.subspan(group.size());
    take(group);
  }
}

}  // namespace satrap
