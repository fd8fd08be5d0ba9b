#include "satrap/backend/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/backend/cache.h"
#include "satrap/core/error.h"
#include "tests/support/device/device.h"

namespace satrap::testing {
namespace {

using backend::Arena;
using backend::CacheSize;
using backend::FloatType;
using backend::Memory;
using backend::RowLayout;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RowLayout layout_of(RowOptimizerType type,
                    std::int64_t dim,
                    FloatType weights = FloatType::kFloat32) {
  RowOptimizer optimizer;
  optimizer.type = type;
  return RowLayout::of(dim, weights, optimizer);
}

TEST(RowLayout, StateFollowsTheWeightsAndRowsAreWholeSectors) {
  const RowLayout sgd = layout_of(RowOptimizerType::kSgd, 8);
  EXPECT_EQ(sgd.stride_bytes, 32);
  const RowLayout adam = layout_of(RowOptimizerType::kAdam, 64, FloatType::kBFloat16);
  EXPECT_EQ(adam.state_offset_bytes, 128);
  EXPECT_EQ(adam.stride_bytes, 128 + 2 * 64 * 4);
  const RowLayout odd = layout_of(RowOptimizerType::kAdagrad, 6);
  EXPECT_EQ(odd.padded_dim, 8);
  EXPECT_EQ(odd.stride_bytes, 64);
  const RowLayout rowwise = layout_of(RowOptimizerType::kRowwiseAdagrad, 4, FloatType::kFloat16);
  EXPECT_EQ(rowwise.state_offset_bytes, 16);
  EXPECT_EQ(rowwise.stride_bytes, 32);
}

TEST(RowLayout, DimsOutOfRangeAreRefused) {
  EXPECT_THROW(layout_of(RowOptimizerType::kSgd, 0), Error);
  EXPECT_NO_THROW(layout_of(RowOptimizerType::kSgd, 1024));
  EXPECT_THROW(layout_of(RowOptimizerType::kSgd, 1025), Error);
}

TEST(CacheSize, IsTheLargestThatFits) {
  const RowLayout layout = layout_of(RowOptimizerType::kSgd, 8);  // 32 + 18 bytes per slot
  EXPECT_EQ(CacheSize::fit(1600, layout, 0).num_sets, 1);
  EXPECT_EQ(CacheSize::fit(3199, layout, 0).num_sets, 1);
  EXPECT_EQ(CacheSize::fit(3200 + 320, layout, 10).num_sets, 2);
  EXPECT_LE(CacheSize::fit(1'000'000, layout, 10).bytes(layout), 1'000'000);
}

TEST(CacheSize, TooLittleMemoryIsRefusedWithTheArithmetic) {
  const RowLayout layout = layout_of(RowOptimizerType::kSgd, 8);
  EXPECT_THAT([&] { CacheSize::fit(1900, layout, 10); },
              ThrowsMessage<Error>(HasSubstr("10 overflow rows of 32 bytes take 320, and the "
                                             "smallest cache is one set of 32 rows, 1600 bytes")));
}

TEST(CacheSize, MoreSlotsThanNumbersAreRefused) {
  const RowLayout layout = layout_of(RowOptimizerType::kSgd, 8);
  EXPECT_THAT([&] { CacheSize::fit(std::int64_t{200} << 30, layout, 0); },
              ThrowsMessage<Error>(HasSubstr("at most 2147483647 can be numbered")));
}

TEST(DeviceMemory, MovesItsOwnership) {
  SATRAP_NEEDS_DEVICE();
  Memory a(Memory::Place::kDevice, 100, "a");
  std::byte* const data = a.data();
  Memory b(std::move(a));
  EXPECT_EQ(b.data(), data);
  Memory c;
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.bytes(), 100);
}

TEST(DeviceMemory, MoreThanThereIsIsRefusedByName) {
  SATRAP_NEEDS_DEVICE();
  EXPECT_THAT([] { Memory(Memory::Place::kDevice, std::int64_t{1} << 50, "the moon"); },
              ThrowsMessage<Error>(HasSubstr("the moon needs 1125899906842624 bytes")));
  EXPECT_NO_THROW(Memory(Memory::Place::kDevice, 100, "afterwards"));
}

TEST(DeviceMemory, ACacheThatDoesNotFitIsRefusedWithTheArithmetic) {
  SATRAP_NEEDS_DEVICE();
  const RowLayout layout = layout_of(RowOptimizerType::kAdam, 1024);
  const backend::Stream stream;
  const CacheSize size{1'000'000, 7};
  EXPECT_THAT([&] { backend::Cache(layout, size, backend::EvictionPolicy::kLru, stream); },
              ThrowsMessage<Error>(HasSubstr("a cache of 1000000 sets of 32 rows and 7 overflow "
                                             "rows, 12288 + 18 bytes each, is ")));
}

TEST(DeviceArena, HandsOutAlignedPartsAndNoMoreThanItHas) {
  SATRAP_NEEDS_DEVICE();
  Arena arena(Memory::Place::kDevice, 600, "a test");
  const auto* first = arena.take<std::byte>(1);
  const auto* second = arena.take<std::int64_t>(4);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(second) - first, Arena::kAlignment);
  EXPECT_EQ(arena.used_bytes(), 512);
  EXPECT_THROW(arena.take<std::byte>(257), Error);
}

TEST(DeviceStreams, AnEventOrdersTwoStreams) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    const backend::Stream first, second(backend::Stream::Priority::kHigh);
    backend::Event done;
    const DeviceArray<int> from(std::vector<int>{1, 2, 3});
    const DeviceArray<int> middle(3), to(3);
    backend::copy(middle.data(), from.data(), 12, first);
    done.record(first);
    done.hold_back(second);
    backend::copy(to.data(), middle.data(), 12, second);
    second.wait_until_idle();
    EXPECT_TRUE(done.is_reached());
    EXPECT_EQ(to.host(), (std::vector<int>{1, 2, 3}));
  });
}

}  // namespace
}  // namespace satrap::testing
