#include "src/table/memory_block.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::table {
namespace {

std::uintptr_t address_of(const MemoryBlock& block) {
  return reinterpret_cast<std::uintptr_t>(block.data());
}

// The sizes at which blocks are mapped, and at which they are of huge pages, and around them.
constexpr std::int64_t kSizes[] = {1,
                                   64,
                                   100,
                                   MemoryBlock::kMappedBytes - 1,
                                   MemoryBlock::kMappedBytes,
                                   MemoryBlock::kMappedBytes + 1,
                                   MemoryBlock::kHugeBytes - 1,
                                   MemoryBlock::kHugeBytes,
                                   MemoryBlock::kHugeBytes + 12345};

TEST(MemoryBlock, OfAnySizeIsZeroAndWritableToItsEnd) {
  for (const std::int64_t size : kSizes) {
    const MemoryBlock block(size);
    const std::span bytes(block.data(), static_cast<std::size_t>(size));
    EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; })) << size;
    std::ranges::fill(bytes, std::byte{0xAB});
    EXPECT_EQ(bytes.back(), std::byte{0xAB});
  }
}

TEST(MemoryBlock, BeginsAtALineOrItsPage) {
  for (const std::int64_t size : kSizes) {
    const MemoryBlock block(size);
    EXPECT_EQ(address_of(block) % MemoryBlock::kAlignment, 0U) << size;
    if (size < MemoryBlock::kMappedBytes) continue;
    EXPECT_EQ(address_of(block) % static_cast<std::uintptr_t>(MemoryBlock::page_bytes(size)), 0U);
  }
  EXPECT_EQ(MemoryBlock::page_bytes(MemoryBlock::kHugeBytes - 1), 4096);
  EXPECT_EQ(MemoryBlock::page_bytes(MemoryBlock::kHugeBytes), 2 << 20);
}

TEST(MemoryBlock, MovesWithItsMemory) {
  for (const std::int64_t size : kSizes) {
    MemoryBlock from(size), to;
    EXPECT_EQ(to.data(), nullptr);
    std::byte* const data = from.data();
    to = std::move(from);
    EXPECT_EQ(to.data(), data);
    MemoryBlock last(std::move(to));
    EXPECT_EQ(last.data(), data);
    last.data()[size - 1] = std::byte{1};
    last = MemoryBlock(1);
    EXPECT_NE(last.data(), nullptr);
    EXPECT_EQ(last.data()[0], std::byte{0});
  }
}

TEST(MemoryBlock, OfNoBytesIsABugAndOfTooManyAnError) {
  EXPECT_THROW(MemoryBlock(0), Error);
  try {
    const MemoryBlock block(std::int64_t{1} << 60);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(std::string(error.what()).find("1152921504606846976 bytes"), std::string::npos);
  }
}

}  // namespace
}  // namespace satrap::table
