#include "src/ps/row_arena.h"

#include <vector>

#include <gtest/gtest.h>

namespace satrap::ps {
namespace {

TEST(RowArena, AddressesAndNumbersAreInverse) {
  RowArena arena(48);
  std::vector<RowPointer> rows;
  constexpr std::int64_t kRows = 40'000;  // beyond the size from which slabs are mapped
  for (std::int64_t i = 0; i < kRows; ++i) {
    rows.push_back(arena.add(i));
    EXPECT_EQ(rows.back()[47], std::byte{0});
    rows.back()[0] = rows.back()[47] = std::byte{1};
  }
  for (std::int64_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(arena.row(i), rows[static_cast<std::size_t>(i)]);
    ASSERT_EQ(arena.number_of(rows[static_cast<std::size_t>(i)], kRows), i);
  }
  EXPECT_EQ(arena.number_of(rows.back(), 8), -1) << "in a slab that the first 8 rows do not reach";
  EXPECT_EQ(arena.number_of(rows.front(), 0), -1);
}

TEST(RowArena, CountsTheBytesItTouches) {
  RowArena arena(1024);
  EXPECT_EQ(arena.resident_bytes(0), 0);
  EXPECT_EQ(arena.resident_bytes(1), 8 * 1024);
  EXPECT_EQ(arena.resident_bytes(8), 8 * 1024);
  EXPECT_EQ(arena.resident_bytes(9), (8 + 16) * 1024);
  // 8184 rows fill the slabs below 8 MiB; the next slab has huge pages, of which one is touched.
  EXPECT_EQ(arena.resident_bytes(8185), 8184 * 1024 + (std::int64_t{2} << 20));
}

}  // namespace
}  // namespace satrap::ps
