#include "satrap/data/row_block_source.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(RowSplit, OneRankHasEveryRow) {
  const RowSplit all;
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1}, INT64_MAX}) {
    EXPECT_TRUE(all.owns(row));
    EXPECT_EQ(all.run(row), INT64_MAX - row);
  }
}

TEST(RowSplit, RanksTakeTurnsOfWholeBatches) {
  const RowSplit second{.rank = 1, .world_size = 3, .rows_per_turn = 2};
  std::vector<std::int64_t> owned;
  for (std::int64_t row = 0; row < 12; ++row) {
    if (second.owns(row)) owned.push_back(row);
  }
  EXPECT_EQ(owned, (std::vector<std::int64_t>{2, 3, 8, 9}));
  EXPECT_EQ(second.run(2), 2);
  EXPECT_EQ(second.run(3), 1);
  EXPECT_EQ(second.run(4), 2);  // of another rank, as long
}

TEST(RowSplit, EveryRowHasOneRankAndARunHasOneOwner) {
  for (const std::int64_t world_size : {1, 2, 5}) {
    for (const std::int64_t rows_per_turn : {1, 3, 7}) {
      const auto split_of = [&](std::int64_t rank) {
        return RowSplit{.rank = rank, .world_size = world_size, .rows_per_turn = rows_per_turn};
      };
      for (std::int64_t row = 0; row < 100; ++row) {
        int owners = 0;
        for (std::int64_t rank = 0; rank < world_size; ++rank) owners += split_of(rank).owns(row);
        ASSERT_EQ(owners, 1);
        const RowSplit first = split_of(0);
        for (std::int64_t r = row; r < std::min(row + first.run(row), row + 20); ++r) {
          ASSERT_EQ(first.owns(r), first.owns(row));
        }
        if (world_size > 1 && first.run(row) == 1) {
          ASSERT_TRUE(!first.owns(row) || !first.owns(row + 1));
        }
      }
    }
  }
}

/// A source that knows nothing but its rows.
struct BareSource : RowBlockSource {
  bool next(RowBlock& block) override {
    block.clear(0, 0);
    return false;
  }
};

TEST(RowBlockSource, NeedNotKnowItsLengthAndCountNothing) {
  BareSource source;
  source.close();
  EXPECT_EQ(source.rows_per_epoch(), 0);
  EXPECT_EQ(source.stats().bytes, 0);
  EXPECT_EQ(source.stats().bad_rows, 0);
}

}  // namespace
}  // namespace satrap::data
