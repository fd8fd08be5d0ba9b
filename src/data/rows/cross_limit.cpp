#include "src/data/rows/cross_limit.h"

#include <cmath>

namespace satrap::data {

CrossLimit::CrossLimit(const Schema& schema)
    : schema_(schema), sources_(schema.features.size()), num_pairs_(schema.crosses.size()) {
  using Kind = Source::Kind;
  const auto set = [&](const auto& feature, Kind kind, std::int64_t place) {
    if (feature.feature == Schema::kGroups) return;
    sources_[static_cast<std::size_t>(feature.feature)] = {
        .kind = kind, .place = place, .missing_is_id = feature.config.missing == MissingId::kOwnId};
  };
  for (std::size_t i = 0; i < schema.id_columns.size(); ++i) {
    set(schema.id_columns[i], Kind::kIds, static_cast<std::int64_t>(i));
  }
  for (const Schema::Bucketed& feature : schema.bucketed) set(feature, Kind::kNumber, feature.raw);
  for (const Schema::Dated& feature : schema.dated) set(feature, Kind::kNumber, feature.raw);
  for (std::size_t i = 0; i < schema.crosses.size(); ++i) {
    set(schema.crosses[i], Kind::kCross, static_cast<std::int64_t>(i));
  }
}

CrossLimit::Excess CrossLimit::find(RowFiller& row) {
  for (std::size_t i = 0; i < num_pairs_.size(); ++i) {
    const Schema::Cross& cross = schema_.crosses[i];
    const std::int64_t first = num_ids(cross.first, row), second = num_ids(cross.second, row);
    if (second > 0 && first > kMostPairs / second) {
      return {.cross = &cross, .first = first, .second = second};
    }
    const bool has_missing = cross.config.missing == MissingId::kOwnId && first * second == 0;
    num_pairs_[i] = has_missing ? 1 : first * second;
  }
  return {};
}

/// As the batch will have them.
std::int64_t CrossLimit::num_ids(std::int64_t feature, RowFiller& row) const {
  const Source& source = sources_[static_cast<std::size_t>(feature)];
  switch (source.kind) {
    case Source::Kind::kIds:
      return row.num_ids(source.place);
    case Source::Kind::kNumber:
      return std::isnan(row.number(source.place)) && !source.missing_is_id ? 0 : 1;
    case Source::Kind::kCross:
      break;
  }
  return num_pairs_[static_cast<std::size_t>(source.place)];
}

}  // namespace satrap::data
