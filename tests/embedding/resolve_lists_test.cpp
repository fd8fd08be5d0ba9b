#include "src/embedding/resolve_lists.h"

#include <random>
#include <ranges>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/device/device.h"

namespace satrap::embedding {
namespace {

using satrap::testing::device;
using satrap::testing::DeviceArray;

/// The result of a resolve, made up.
struct Result {
  std::vector<Key> victims, missing, overflow;
  std::vector<std::int32_t> slots;
  std::vector<backend::OverflowRow> shared;
  std::uint32_t hits = 0, num_without_row = 0;
};

template <class T>
std::vector<T> padded(std::vector<T> values, std::int64_t size) {
  values.resize(static_cast<std::size_t>(size));
  return values;
}

void check(ResolveLists& lists,
           const Result& result,
           std::int64_t num_ids,
           const backend::Stream& stream) {
  const auto max_overflow = std::ssize(result.overflow) + (result.num_without_row == 0 ? 7 : 0);
  const DeviceArray<backend::ResolveCounts> counts(std::vector{backend::ResolveCounts{
      .misses = static_cast<std::uint32_t>(result.missing.size()),
      .writebacks = static_cast<std::uint32_t>(result.victims.size()),
      .overflows = static_cast<std::uint32_t>(result.overflow.size()) + result.num_without_row,
      .hits = result.hits}});
  const DeviceArray<Key> victims(padded(result.victims, num_ids)),
      missing(padded(result.missing, num_ids)), overflow(padded(result.overflow, max_overflow));
  const DeviceArray<std::int32_t> slots(padded(result.slots, num_ids));
  const DeviceArray<backend::OverflowRow> shared(result.shared);
  lists.read({.counts = counts.data(),
              .miss_keys = missing.data(),
              .miss_slots = slots.data(),
              .overflow_keys = overflow.data(),
              .writeback_keys = victims.data()},
             {.max_overflow = max_overflow,
              .shared = shared.data(),
              .num_shared = std::ssize(result.shared)},
             num_ids, stream);
  const auto same = [](const auto& found, const auto& expected) {
    return std::ranges::equal(found, expected);
  };
  EXPECT_TRUE(same(lists.victims(), result.victims));
  EXPECT_TRUE(same(lists.missing(), result.missing));
  EXPECT_TRUE(same(lists.missing_slots(), result.slots));
  EXPECT_TRUE(same(lists.overflow(), result.overflow));
  ASSERT_EQ(lists.shared().size(), result.shared.size());
  for (std::size_t i = 0; i < result.shared.size(); ++i) {
    EXPECT_EQ(lists.shared()[i].tag, result.shared[i].tag);
    EXPECT_EQ(lists.shared()[i].slot, result.shared[i].slot);
    EXPECT_EQ(lists.shared()[i].is_needed, result.shared[i].is_needed);
  }
  EXPECT_EQ(lists.counts().hits, result.hits);
  EXPECT_EQ(lists.counts().misses, result.missing.size());
}

TEST(ResolveLists, AreWholeHoweverManyTheLastOneHad) {
  SATRAP_NEEDS_DEVICE();
  satrap::testing::for_each_schedule([] {
    std::mt19937_64 random(7);
    const backend::Stream stream(device());
    ResolveLists lists(device());
    std::uint64_t next = 1;
    for (const std::int64_t num_ids : {0, 1, 300, 0, 300, 280, 40, 1000, 999, 5}) {
      for (int turn = 0; turn < 4; ++turn) {
        // All, none, or some of the ids.
        const auto count = [&](std::int64_t limit) {
          const std::uint64_t kind = random() % 4;
          if (kind == 0) return std::int64_t{0};
          return kind == 1
                     ? limit
                     : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit + 1));
        };
        const auto keys = [&](std::int64_t size) {
          std::vector<Key> made;
          while (std::ssize(made) < size) made.push_back(make_key(TableId{0}, next++));
          return made;
        };
        Result result;
        result.missing = keys(count(num_ids));
        result.hits = static_cast<std::uint32_t>(random() % 100);
        result.victims = keys(count(std::ssize(result.missing)));
        result.overflow = keys(count(std::ssize(result.missing) - std::ssize(result.victims)));
        result.num_without_row = random() % 3 == 0 ? 2 : 0;
        for (std::size_t i = 0; i < result.missing.size(); ++i) {
          result.slots.push_back(static_cast<std::int32_t>(next++));
        }
        const std::uint64_t num_shared = random() % 20;
        for (std::uint64_t i = 0; i < num_shared; ++i) {
          result.shared.push_back(
              {.tag = next++, .slot = 1, .is_needed = static_cast<std::uint32_t>(i % 2)});
        }
        check(lists, result, num_ids, stream);
      }
    }
  });
}

}  // namespace
}  // namespace satrap::embedding
