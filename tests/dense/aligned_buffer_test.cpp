#include "src/dense/aligned_buffer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

namespace satrap::dense {
namespace {

TEST(AlignedBuffer, OfNothingIsEmpty) {
  EXPECT_EQ(AlignedBuffer().size(), 0);
  EXPECT_TRUE(AlignedBuffer().span().empty());
  EXPECT_TRUE(AlignedBuffer(0).span().empty());
}

TEST(AlignedBuffer, IsZeroAlignedAndOfTheSizeAskedFor) {
  for (const std::int64_t size : {1, 15, 16, 17, 1000}) {
    const AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(std::ssize(buffer.span()), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_EQ(std::ranges::count(buffer.span(), 0.0F), size);
    std::ranges::fill(buffer.span(), 1.0F);
    EXPECT_EQ(buffer.data()[size - 1], 1.0F);
  }
}

TEST(AlignedBuffer, MovesWithItsMemory) {
  AlignedArray<std::uint16_t> from(3);
  std::uint16_t* const data = from.data();
  data[2] = 7;
  const AlignedArray<std::uint16_t> to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(to.span()[2], 7);
}

}  // namespace
}  // namespace satrap::dense
