#include "src/ps/row_arena.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

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

bool is_in_memory(std::byte* address) {
  const auto in_page = reinterpret_cast<std::uintptr_t>(address) % 4096;
  unsigned char state = 0;
  EXPECT_EQ(mincore(address - in_page, 4096, &state), 0);
  return (state & 1) != 0;
}

TEST(RowArena, GetsHugePagesAheadOfTheirRows) {
  const MemoryBlock untouched(MemoryBlock::kHugeBytes);
  if (is_in_memory(untouched.data())) GTEST_SKIP() << "mincore does not tell what is in memory";
  constexpr std::int64_t kPage = MemoryBlock::kHugePageBytes, kStride = 1024;
  constexpr std::int64_t kFirstHuge = 4088, kPageRows = kPage / kStride;  // a slab of 4 MiB
  constexpr std::int64_t kLead = 256 * kStride;
  RowArena arena(kStride, kLead);
  auto fill = [&, size = std::int64_t{0}](std::int64_t num_rows) mutable {
    for (; size < num_rows; ++size) std::fill_n(arena.add(size), kStride, std::byte{7});
  };
  fill(kFirstHuge);
  const std::int64_t small = kFirstHuge * kStride;
  EXPECT_EQ(arena.resident_bytes(kFirstHuge - 256), small - kLead) << "not reached yet";
  EXPECT_EQ(arena.resident_bytes(kFirstHuge), small + kPage) << "of the next slab";
  EXPECT_TRUE(is_in_memory(arena.row(kFirstHuge)));
  EXPECT_FALSE(is_in_memory(arena.row(kFirstHuge + kPageRows)));

  fill(kFirstHuge + kPageRows - 256);
  EXPECT_FALSE(is_in_memory(arena.row(kFirstHuge + kPageRows)));
  EXPECT_EQ(arena.resident_bytes(kFirstHuge + kPageRows - 256), small + kPage);
  fill(kFirstHuge + kPageRows - 255);
  EXPECT_TRUE(is_in_memory(arena.row(kFirstHuge + kPageRows)));
  EXPECT_EQ(arena.resident_bytes(kFirstHuge + kPageRows - 255), small + 2 * kPage);

  fill(30'000);  // over slabs of 8 and 16 MiB
  for (std::int64_t i = 0; i < 30'000; ++i) {
    ASSERT_EQ(std::count(arena.row(i), arena.row(i) + kStride, std::byte{7}), kStride) << i;
  }
  EXPECT_EQ(arena.add(30'000)[0], std::byte{0});
}

}  // namespace
}  // namespace satrap::ps
