#include "src/table/row_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "src/table/row_arena.h"

namespace satrap::table {
namespace {

constexpr std::int64_t kPage = MemoryBlock::kHugePageBytes;

/// Row numbers are `partition * 1'000'000 + number`, written at both ends of each row.
void write(RowPointer row, std::int64_t stride, std::int64_t partition, std::int64_t number) {
  const std::int64_t value = partition * 1'000'000 + number;
  std::memcpy(row, &value, sizeof(value));
  std::memcpy(row + stride - sizeof(value), &value, sizeof(value));
}
bool holds(RowPointer row, std::int64_t stride, std::int64_t partition, std::int64_t number) {
  std::int64_t first = 0, last = 0;
  std::memcpy(&first, row, sizeof(first));
  std::memcpy(&last, row + stride - sizeof(last), sizeof(last));
  return first == partition * 1'000'000 + number && last == first;
}

TEST(RowMemory, RowsOfAllPartitionsAreApartAndStay) {
  for (const std::int64_t num_partitions : {1, 2, 64}) {
    constexpr std::int64_t kStride = 48;
    RowMemory memory(kStride, num_partitions);
    std::mt19937_64 random(static_cast<std::uint64_t>(num_partitions));
    std::vector<std::vector<RowPointer>> rows(static_cast<std::size_t>(num_partitions));
    for (std::int64_t i = 0; i < 40'000; ++i) {
      // Some partitions have more rows than others.
      const auto partition = std::min(random() % rows.size(), random() % rows.size());
      auto& mine = rows[partition];
      const RowPointer row = memory.add(static_cast<std::int64_t>(partition), std::ssize(mine));
      ASSERT_EQ(std::count(row, row + kStride, std::byte{0}), kStride);
      write(row, kStride, static_cast<std::int64_t>(partition), std::ssize(mine));
      mine.push_back(row);
    }
    for (std::int64_t p = 0; p < num_partitions; ++p) {
      const auto& mine = rows[static_cast<std::size_t>(p)];
      for (std::int64_t i = 0; i < std::ssize(mine); ++i) {
        const RowPointer row = mine[static_cast<std::size_t>(i)];
        ASSERT_EQ(memory.row(p, i), row);
        ASSERT_EQ(memory.number_of(row, std::ssize(mine)), i);
        ASSERT_TRUE(holds(row, kStride, p, i)) << "partition " << p << ", row " << i;
      }
    }
  }
}

TEST(RowMemory, NumberOfAnAddressElsewhereIsNone) {
  RowMemory memory(48, 4);
  RowPointer last = nullptr;
  for (std::int64_t i = 0; i < 1000; ++i) last = memory.add(2, i);
  EXPECT_EQ(memory.number_of(last, 1000), 999);
  EXPECT_EQ(memory.number_of(last, 8), -1) << "in a block that the first 8 rows do not reach";
  EXPECT_EQ(memory.number_of(memory.row(2, 0), 0), -1);
  std::byte elsewhere{};
  EXPECT_EQ(memory.number_of(&elsewhere, 1000), -1);
}

TEST(RowMemory, PartitionsAddRowsAtTheSameTime) {
  constexpr std::int64_t kStride = 64, kPartitions = 4, kRows = 20'000;
  RowMemory memory(kStride, kPartitions);
  std::vector<std::thread> threads;
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    threads.emplace_back([&memory, p] {
      for (std::int64_t i = 0; i < kRows; ++i) write(memory.add(p, i), kStride, p, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::int64_t p = 0; p < kPartitions; ++p) {
    for (std::int64_t i = 0; i < kRows; ++i) ASSERT_TRUE(holds(memory.row(p, i), kStride, p, i));
  }
}

TEST(RowMemory, ManyPartitionsShareHugePages) {
  constexpr std::int64_t kStride = 1024, kPartitions = 64, kRows = 127;
  RowMemory memory(kStride, kPartitions);
  std::map<std::uintptr_t, std::int64_t> rows_of_page;
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t p = 0; p < kPartitions; ++p) {
      const auto page = reinterpret_cast<std::uintptr_t>(memory.add(p, i)) / kPage;
      if (i >= 56) ++rows_of_page[page];  // from there on blocks have 4 MiB or more
    }
  }
  EXPECT_LE(std::ssize(rows_of_page), (kRows - 56) * kPartitions * kStride / kPage + 2);
}

bool is_in_memory(std::byte* address) {
  const auto in_page = reinterpret_cast<std::uintptr_t>(address) % 4096;
  unsigned char state = 0;
  EXPECT_EQ(mincore(address - in_page, 4096, &state), 0);
  return (state & 1) != 0;
}

TEST(RowMemory, TakesMemoryAsRowsCome) {
  const MemoryBlock untouched(MemoryBlock::kHugeBytes);
  if (is_in_memory(untouched.data())) GTEST_SKIP() << "mincore does not tell what is in memory";
  constexpr std::int64_t kStride = 1024, kPartitions = 64;
  RowMemory memory(kStride, kPartitions);
  std::int64_t size = 0;
  const auto fill = [&](std::int64_t rows) {
    for (; size < rows; ++size) {
      for (std::int64_t p = 0; p < kPartitions; ++p) {
        std::fill_n(memory.add(p, size), kStride, std::byte{7});
      }
    }
  };
  fill(1017);  // one row in a block of 64 MiB
  EXPECT_TRUE(is_in_memory(memory.row(0, 1016)));
  EXPECT_TRUE(is_in_memory(memory.row(63, 1016)));
  EXPECT_FALSE(is_in_memory(memory.row(0, 1016 + 512)));
  EXPECT_FALSE(is_in_memory(memory.row(63, 2039)));
}

TEST(RowMemory, CountsAPartitionsShareOfTheBytes) {
  RowMemory memory(1024, 64);
  EXPECT_EQ(memory.resident_bytes(0), 0);
  EXPECT_EQ(memory.resident_bytes(1), 4 * 1024) << "of a block of 512 KiB, by pages";
  EXPECT_EQ(memory.resident_bytes(8), 8 * 1024);
  EXPECT_EQ(memory.resident_bytes(1016), 1016 * 1024);
  EXPECT_EQ(memory.resident_bytes(1017), (1016 + 32) * 1024) << "a 64th of a huge page";
  RowMemory small(16, 64);
  EXPECT_EQ(small.resident_bytes(1), 8 * 16) << "of a block from the heap, all";
  RowMemory alone(1024, 1);
  EXPECT_EQ(alone.resident_bytes(9), (8 + 16) * 1024);
  EXPECT_EQ(alone.resident_bytes(8185), 8184 * 1024 + kPage);
}

TEST(RowArena, HasTheRowsOfItsPartition) {
  const auto memory = std::make_shared<RowMemory>(64, 2);
  RowArena first(memory, 0), second(memory, 1), alone(64);
  for (std::int64_t i = 0; i < 100; ++i) {
    write(first.add(i), 64, 0, i);
    write(second.add(i), 64, 1, i);
    write(alone.add(i), 64, 2, i);
  }
  for (std::int64_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(holds(first.row(i), 64, 0, i));
    EXPECT_TRUE(holds(second.row(i), 64, 1, i));
    EXPECT_TRUE(holds(alone.row(i), 64, 2, i));
    EXPECT_EQ(second.number_of(second.row(i), 100), i);
  }
  EXPECT_EQ(alone.number_of(first.row(3), 100), -1);
}

TEST(RowMemory, ARegisteredBlockIsResidentAsAWhole) {
  constexpr std::int64_t kStride = 64, kFirstOfMapped = 8 * ((1 << 9) - 1);  // block 9 has 256 KiB
  const auto bytes_with = [&](bool registers, std::int64_t partitions) {
    RowMemory memory(kStride, partitions);
    if (registers) {
      memory.register_blocks([](std::byte* pages, std::int64_t) {
        return std::shared_ptr<void>(pages, [](void*) {});
      });
    }
    for (std::int64_t i = 0; i <= kFirstOfMapped; ++i) memory.add(0, i);
    return memory.resident_bytes(kFirstOfMapped + 1) + memory.registered_bytes();
  };
  EXPECT_EQ(bytes_with(false, 1), kFirstOfMapped * kStride + MemoryBlock::kPageBytes);
  EXPECT_EQ(bytes_with(true, 1), kFirstOfMapped * kStride + (std::int64_t{256} << 10));
  EXPECT_EQ(bytes_with(true, 2), 2 * bytes_with(true, 1)) << "with the part of another partition";
}

}  // namespace
}  // namespace satrap::table
