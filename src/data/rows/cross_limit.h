#pragma once

#include <cstdint>
#include <vector>

#include "satrap/data/schema.h"
#include "src/data/rows/row_filler.h"

namespace satrap::data {

/// The most pairs that a cross makes of a row: its ids are two bags', so that long ones would fill
/// the memory. python/satrap/fields.py has the same number.
inline constexpr std::int64_t kMostPairs = 65'536;

/// Finds rows of which a cross would make more. One thread at a time; the schema must outlive it.
class CrossLimit {
 public:
  /// A cross, and how many ids its two features have in a row.
  struct Excess {
    const Schema::Cross* cross = nullptr;  // null: there is none
    std::int64_t first = 0, second = 0;
  };

  explicit CrossLimit(const Schema& schema);

  bool has_crosses() const { return !schema_.crosses.empty(); }

  /// The first cross that has too many pairs in the open row, all of whose values are there.
  Excess find(RowFiller& row);

 private:
  /// What a feature is made from, and its place among those of its kind.
  struct Source {
    enum class Kind : std::uint8_t { kIds, kNumber, kCross };
    Kind kind = Kind::kIds;
    std::int64_t place = 0;
    bool missing_is_id = false;
  };

  std::int64_t num_ids(std::int64_t feature, RowFiller& row) const;

  const Schema& schema_;
  std::vector<Source> sources_;          // [schema.features]
  std::vector<std::int64_t> num_pairs_;  // [schema.crosses] of the row, with that of a missing one
};

}  // namespace satrap::data
