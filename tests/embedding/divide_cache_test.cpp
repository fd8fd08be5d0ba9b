#include "src/embedding/divide_cache.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::embedding {
namespace {

using backend::CacheSize;
using ::testing::HasSubstr;

const RowLayout kNarrow = RowLayout::of(4, FloatType::kFp32, RowOptimizerType::kSgd);
const RowLayout kWide = RowLayout::of(64, FloatType::kFp32, RowOptimizerType::kAdam);

std::int64_t bytes_of_set(const RowLayout& layout) { return CacheSize{1, 0}.bytes(layout); }

std::int64_t bytes_in_sets(const std::vector<GroupNeed>& needs,
                           const std::vector<CacheSize>& sizes) {
  std::int64_t bytes = 0;
  for (std::size_t g = 0; g < needs.size(); ++g) {
    bytes += sizes[g].num_sets * bytes_of_set(*needs[g].layout);
  }
  return bytes;
}

std::string refusal(const std::vector<GroupNeed>& needs, const CacheLimits& limits) {
  try {
    divide_cache(needs, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

TEST(DivideCache, UsesTheMemoryAndNoMore) {
  for (const std::int64_t num_keys : {1, 10, 1000, 100'000}) {
    const std::vector<GroupNeed> needs = {{&kNarrow, num_keys}, {&kWide, 3 * num_keys}};
    constexpr std::int64_t kBytes = 10 << 20;
    const std::int64_t used = bytes_in_sets(needs, divide_cache(needs, {.memory_bytes = kBytes}));
    EXPECT_LE(used, kBytes);
    EXPECT_GT(used, kBytes - bytes_of_set(kNarrow) - bytes_of_set(kWide));
  }
}

TEST(DivideCache, EachGroupHoldsTheRowsOfAsManyBatches) {
  const std::vector<GroupNeed> needs = {{&kNarrow, 10'000}, {&kWide, 2'000}, {&kWide, 4'000}};
  const std::vector<CacheSize> sizes = divide_cache(needs, {.memory_bytes = 100 << 20});
  const auto batches = [&](std::size_t g) {
    return static_cast<double>(sizes[g].num_slots()) / static_cast<double>(needs[g].num_keys);
  };
  EXPECT_NEAR(batches(0) / batches(2), 1.0, 0.02);
  EXPECT_NEAR(batches(1) / batches(2), 1.0, 0.02);
}

TEST(DivideCache, ASetForEachGroupIsTheLeast) {
  const std::vector<GroupNeed> needs = {{&kNarrow, 500}, {&kWide, 500}};
  const std::int64_t least = bytes_of_set(kNarrow) + bytes_of_set(kWide);
  const std::vector<CacheSize> sizes = divide_cache(needs, {.memory_bytes = least});
  EXPECT_EQ(sizes[0].num_sets, 1);
  EXPECT_EQ(sizes[1].num_sets, 1);
  const std::string message = refusal(needs, {.memory_bytes = least - 1});
  EXPECT_THAT(message, HasSubstr("embedding.cache.memory: "));
  EXPECT_THAT(message, HasSubstr("is too small"));
  EXPECT_THAT(message, HasSubstr("32 rows for each of 2 groups"));
  EXPECT_THAT(message, HasSubstr(concat("together ", least, " bytes")));
}

TEST(DivideCache, OverflowRowsHoldAllBatchesInFlightWhereTheSetsAreFew) {
  const std::vector<GroupNeed> needs = {{&kWide, 1'000}};
  const std::vector<CacheSize> sizes =
      divide_cache(needs, {.memory_bytes = bytes_of_set(kWide), .max_in_flight = 7});
  EXPECT_GE(sizes[0].overflow_rows, 7 * 1'250);
  EXPECT_LE(sizes[0].overflow_rows, 7 * 1'260);
}

TEST(DivideCache, AmpleSetsNeedFewOverflowRows) {
  const std::vector<GroupNeed> needs = {{&kNarrow, 1'000}};
  const std::vector<CacheSize> sizes =
      divide_cache(needs, {.memory_bytes = 100 << 20, .max_in_flight = 7});
  EXPECT_GE(sizes[0].overflow_rows, CacheSize::kWays);
  EXPECT_LE(sizes[0].overflow_rows, 1'000);
}

/// As in a first batch without ids: it says nothing of those to come.
TEST(DivideCache, AfterABatchWithoutKeysEachGroupHasAsManyRows) {
  const std::vector<GroupNeed> needs = {{&kNarrow, 0}, {&kWide, 0}};
  const std::vector<CacheSize> sizes =
      divide_cache(needs, {.memory_bytes = 1 << 20, .max_in_flight = 4});
  EXPECT_EQ(sizes[0].num_sets, sizes[1].num_sets);
  EXPECT_GT(bytes_in_sets(needs, sizes), (1 << 20) * 9 / 10);
  EXPECT_GE(sizes[0].overflow_rows, 4);
}

TEST(DivideCache, AGroupWithoutKeysLeavesItsMemoryToTheOthers) {
  const std::vector<GroupNeed> needs = {{&kNarrow, 0}, {&kWide, 100}};
  const std::vector<CacheSize> sizes = divide_cache(needs, {.memory_bytes = 1 << 20});
  EXPECT_LE(sizes[0].num_sets, 2);
  EXPECT_GT(sizes[1].num_sets * bytes_of_set(kWide), (1 << 20) * 9 / 10);
}

TEST(DivideCache, MoreRowsThanCanBeNumberedAreRefused) {
  const std::string message = refusal({{&kNarrow, 1'000}}, {.memory_bytes = std::int64_t{1} << 40});
  EXPECT_THAT(message, HasSubstr("embedding.cache.memory: 1.00TiB"));
  EXPECT_THAT(message, HasSubstr(concat("at most ", CacheSize::kMaxSlots)));
}

}  // namespace
}  // namespace satrap::embedding
