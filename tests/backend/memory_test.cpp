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
using backend::Memory;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RowLayout layout_of(RowOptimizerType type, std::int64_t dim, FloatType weights = FloatType::kFp32) {
  return RowLayout::of(dim, weights, type);
}

TEST(CacheSize, DimsOutOfRangeAreRefused) {
  const auto fit = [](std::int64_t dim) {
    return CacheSize::fit(1 << 30, layout_of(RowOptimizerType::kSgd, dim), 0);
  };
  EXPECT_THROW(fit(0), Error);
  EXPECT_NO_THROW(fit(1024));
  EXPECT_THROW(fit(1025), Error);
}

TEST(CacheSize, IsTheLargestThatFits) {
  const RowLayout layout = layout_of(RowOptimizerType::kSgd, 8);  // 64 + 22 bytes per slot
  EXPECT_EQ(CacheSize::fit(2752, layout, 0).num_sets, 1);
  EXPECT_EQ(CacheSize::fit(5503, layout, 0).num_sets, 1);
  EXPECT_EQ(CacheSize::fit(5504 + 640, layout, 10).num_sets, 2);
  EXPECT_LE(CacheSize::fit(1'000'000, layout, 10).bytes(layout), 1'000'000);
}

TEST(CacheSize, TooLittleMemoryIsRefusedWithTheArithmetic) {
  const RowLayout layout = layout_of(RowOptimizerType::kSgd, 8);
  EXPECT_THAT([&] { CacheSize::fit(3000, layout, 10); },
              ThrowsMessage<Error>(HasSubstr("10 overflow rows of 64 bytes take 640, and the "
                                             "smallest cache is one set of 32 rows, 2752 bytes")));
}

TEST(CacheSize, MoreSlotsThanNumbersAreRefused) {
  const RowLayout layout = layout_of(RowOptimizerType::kSgd, 8);
  EXPECT_THAT([&] { CacheSize::fit(std::int64_t{200} << 30, layout, 0); },
              ThrowsMessage<Error>(HasSubstr("at most 2147483647 can be numbered")));
}

TEST(DeviceMemory, MovesItsOwnership) {
  SATRAP_NEEDS_DEVICE();
  Memory a(device(), backend::Place::kDevice, 100, "a");
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
  EXPECT_THAT([] { Memory(device(), backend::Place::kDevice, std::int64_t{1} << 50, "the moon"); },
              ThrowsMessage<Error>(HasSubstr("the moon needs 1125899906842624 bytes")));
  EXPECT_NO_THROW(Memory(device(), backend::Place::kDevice, 100, "afterwards"));
}

TEST(DeviceMemory, ACacheThatDoesNotFitIsRefusedWithTheArithmetic) {
  SATRAP_NEEDS_DEVICE();
  const RowLayout layout = layout_of(RowOptimizerType::kAdam, 1024);
  const backend::Stream stream(device());
  const CacheSize size{1'000'000, 7};
  EXPECT_THAT(
      [&] { backend::Cache(device(), layout, size, backend::EvictionPolicy::kLru, stream); },
      ThrowsMessage<Error>(HasSubstr("a cache of 1000000 sets of 32 rows and 7 overflow "
                                     "rows, 12320 + 22 bytes each, is ")));
}

TEST(DeviceArena, HandsOutAlignedPartsAndNoMoreThanItHas) {
  SATRAP_NEEDS_DEVICE();
  Arena arena(device(), backend::Place::kDevice, 600, "a test");
  const auto* first = arena.take<std::byte>(1);
  const auto* second = arena.take<std::int64_t>(4);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(second) - first, Arena::kAlignment);
  EXPECT_EQ(arena.used_bytes(), 512);
  EXPECT_THROW(arena.take<std::byte>(257), Error);
}

TEST(DeviceStreams, AnEventOrdersTwoStreams) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    const backend::Stream first(device()), second(device(), backend::Stream::Priority::kHigh);
    backend::Event done(device());
    const DeviceArray<int> from(std::vector<int>{1, 2, 3});
    const DeviceArray<int> middle(3), to(3);
    device().copy(middle.data(), from.data(), 12, first);
    done.record(first);
    done.make_wait(second);
    device().copy(to.data(), middle.data(), 12, second);
    second.wait_until_idle();
    EXPECT_TRUE(done.is_reached());
    EXPECT_EQ(to.host(), (std::vector<int>{1, 2, 3}));
  });
}

TEST(DeviceStreams, AskingForAnEventTooEarlyLeavesNoErrorBehind) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    const backend::Stream stream(device()), other(device());
    const backend::Cache cache(device(), layout_of(RowOptimizerType::kSgd, 4), {1, 1},
                               backend::EvictionPolicy::kLru, other);
    const backend::SlotListBuffer list(device(), 1);
    backend::Event done(device());
    const DeviceArray<int> from(std::vector<int>(1000)), to(1000);
    for (int i = 0; i < 10; ++i) device().copy(to.data(), from.data(), 4000, stream);
    done.record(stream);
    do {
      device().list_slots({cache.view(), 0, 1, list.view()}, other);
    } while (!done.is_reached());
    other.wait_until_idle();
    EXPECT_EQ(download(list.view().count, 1), std::vector<std::uint32_t>{0});
  });
}

}  // namespace
}  // namespace satrap::testing
