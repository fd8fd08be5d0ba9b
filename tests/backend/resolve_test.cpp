#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/backend/cache_twins.h"

namespace satrap::testing {
namespace {

using backend::CacheSize;
using backend::EvictionPolicy;

TEST(DeviceResolve, WhatCameInIsFoundAgain) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    Twins twins({1, 4}, EvictionPolicy::kLru, 8);
    EXPECT_EQ(twins.resolve(batch_of({5, 7, 5}), {.batch = 1}).hits, 0);
    EXPECT_EQ(twins.resolve(batch_of({7, 8}), {.batch = 2}).hits, 1);
  });
}

TEST(DeviceResolve, EmptyBatchFindsNothing) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    Twins twins({2, 4}, EvictionPolicy::kLru, 8);
    twins.resolve(batch_of({}), {.batch = 1});
  });
}

TEST(DeviceResolve, TheOldestUnpinnedRowGoesFirst) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    Twins twins({1, 4}, EvictionPolicy::kLru, 64);
    twins.dirty(twins.resolve(batch_of(range(0, 20)), {.batch = 1}));
    twins.dirty(twins.resolve(batch_of(range(20, 32)), {.batch = 2, .completed = 1}));
    const auto found =
        twins.resolve(batch_of(range(100, 105)), {.batch = 3, .completed = 2}, twins.rows(0, 4));
    EXPECT_EQ(found.overflows, 0);
    EXPECT_FALSE(found.writeback_keys.empty());
  });
}

TEST(DeviceResolve, PinnedRowsStayAndOverflowTakesTheRest) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    Twins twins({1, 8}, EvictionPolicy::kLru, 64);
    twins.dirty(twins.resolve(batch_of(range(0, 32)), {.batch = 1}));
    // Batch 1 is not completed: all 32 rows are pinned. Overflow rows 3 to 6 are this batch's.
    const auto found = twins.resolve(batch_of(range(30, 40)), {.batch = 2}, twins.rows(3, 7));
    EXPECT_EQ(found.hits, 2);
    EXPECT_EQ(found.overflows, 8);
    EXPECT_EQ(found.overflow_keys.size(), 4);
    EXPECT_TRUE(found.writeback_keys.empty());
    twins.compare_bookkeeping();
  });
}

TEST(DeviceResolve, WhereAllSetsAreFullOfPinnedRowsNothingIsAdmitted) {
  SATRAP_NEEDS_DEVICE();
  for (const auto policy : {EvictionPolicy::kLru, EvictionPolicy::kLfu}) {
    for_each_schedule([&] {
      Twins twins({9, 70}, policy, 2000);
      const auto filled = twins.resolve(batch_of(range(0, 1000)), {.batch = 1}, twins.rows(0, 5));
      ASSERT_EQ(filled.overflows, 1000 - 9 * 32) << "every set is full";
      const auto found =
          twins.resolve(batch_of(range(2000, 2101)), {.batch = 2}, twins.rows(5, 70));
      EXPECT_EQ(found.hits, 0);
      EXPECT_EQ(found.overflows, 101);
      EXPECT_EQ(found.overflow_keys.size(), 65);
      EXPECT_EQ(std::count(found.slots.begin(), found.slots.end(), -1), 101 - 65);
      EXPECT_TRUE(found.writeback_keys.empty());
      twins.compare_bookkeeping();
    });
  }
}

TEST(DeviceResolve, EqualsTheHostForEveryDegreeOfDuplicates) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t percent : kDuplicatePercents) {
    SCOPED_TRACE(percent);
    for_each_schedule([&] {
      Twins twins({31, 300}, EvictionPolicy::kLfu, 3989);
      for (std::uint32_t b = 1; b <= 3; ++b) {
        const auto batch = batch_with_duplicates(b == 2 ? 100 : 3989, percent, 4,
                                                 static_cast<std::uint64_t>(percent) + b);
        twins.dirty(twins.resolve(batch, {.batch = b, .completed = b - 1}, twins.rows(0, 300)));
      }
      twins.compare_bookkeeping();
    });
  }
}

TEST(DeviceResolve, RowsThatTheBatchNeedsAreNotItsVictims) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    Twins twins({1, 64}, EvictionPolicy::kLru, 128);
    twins.dirty(twins.resolve(batch_of(range(0, 32)), {.batch = 1}));
    // 16 of the old rows and 40 new ones: 16 of these find room, 24 do not.
    auto ids = range(0, 16);
    const auto more = range(1000, 1040);
    ids.insert(ids.end(), more.begin(), more.end());
    const auto found =
        twins.resolve(batch_of(ids), {.batch = 2, .completed = 1}, twins.rows(0, 64));
    EXPECT_EQ(found.hits, 16);
    EXPECT_EQ(found.overflows, 24);
  });
}

TEST(DeviceResolve, TheRarestRowGoesFirst) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    Twins twins({1, 4}, EvictionPolicy::kLfu, 200);
    auto ids = range(0, 32);
    for (std::uint64_t id = 0; id < 32; ++id) {
      for (std::uint64_t i = 0; i < (id * 7) % 5; ++i) ids.push_back(id);
    }
    twins.dirty(twins.resolve(batch_of(ids), {.batch = 1}));
    twins.resolve(batch_of(range(50, 60)), {.batch = 2, .completed = 1}, twins.rows(0, 4));
    twins.compare_bookkeeping();
  });
}

TEST(DeviceResolve, EqualsTheHostOverManyBatches) {
  SATRAP_NEEDS_DEVICE();
  for (const auto policy : {EvictionPolicy::kLru, EvictionPolicy::kLfu}) {
    for (const std::int64_t num_sets : {1, 3, 16, 1000}) {
      SCOPED_TRACE(::testing::Message() << num_sets << " sets, policy " << int(policy));
      for_each_schedule([&] {
        Twins twins({num_sets, 60}, policy, 600);
        for (std::uint32_t b = 1; b <= 6; ++b) {
          const auto batch = random_batch({.num_examples = 37,
                                           .max_bag = b == 4 ? 0 : 12,
                                           .distinct_ids = num_sets * 40,
                                           .dim = 4},
                                          b);
          // Batches complete two steps later: until then their rows are pinned.
          const std::int32_t first = b % 2 == 0 ? 0 : 30;
          const auto found = twins.resolve(batch, {.batch = b, .completed = b > 2 ? b - 2 : 0},
                                           twins.rows(first, first + 30));
          twins.dirty(found);
        }
        twins.compare_bookkeeping();
      });
    }
  }
}

TEST(DeviceResolve, AKeyInAnOverflowRowOfAnUnfinishedBatchIsFoundThere) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([&] {
    Twins twins({1, 8}, EvictionPolicy::kLfu, 64);
    twins.resolve(batch_of(range(0, 32)), {.batch = 1});
    const auto second = twins.resolve(batch_of({40, 41, 42}), {.batch = 2}, twins.rows(1, 8));
    HostCache::Overflow overflow = twins.rows(4, 8);
    for (std::size_t i = 0; i < second.overflow_keys.size(); ++i) {
      overflow.shared[backend::tag_of(second.overflow_keys[i])] = 33 + static_cast<int>(i);
    }
    // Batch 1 is done: there is room for 40 and 42, which stay where they are, and for 43.
    const auto third =
        twins.resolve(batch_of({40, 42, 43, 5}), {.batch = 3, .completed = 1}, overflow);
    EXPECT_EQ(third.hits, 3);
    EXPECT_EQ(third.miss_keys, std::vector<Key>{make_key(TableId{}, 43)});
    EXPECT_EQ(third.overflows, 0);
    EXPECT_EQ(std::count_if(third.slots.begin(), third.slots.end(),
                            [](std::int32_t slot) { return slot >= 33 && slot < 36; }),
              2);
    twins.compare_bookkeeping();
  });
}

/// Who holds which overflow row: its key, and the last batch that uses it.
class OverflowRows {
 public:
  OverflowRows(std::int64_t first, std::int64_t count)
      : first_(first), rows_(static_cast<std::size_t>(count)) {}

  /// At most `max` free rows, in the order of a random number; and what the others hold.
  HostCache::Overflow offer(std::size_t max, std::uint32_t completed, Random& random) {
    HostCache::Overflow overflow;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      Row& row = rows_[r];
      const auto slot = static_cast<std::int32_t>(first_ + static_cast<std::int64_t>(r));
      if (row.last_batch <= completed) row.tag.reset();
      if (row.tag) {
        overflow.shared[*row.tag] = slot;
      } else {
        const auto at = random.below(std::ssize(overflow.slots) + 1);
        overflow.slots.insert(overflow.slots.begin() + at, slot);
      }
    }
    overflow.slots.resize(std::min(max, overflow.slots.size()));
    return overflow;
  }

  void hold(std::uint64_t tag, std::int32_t slot, std::uint32_t batch) {
    if (slot >= first_) rows_[static_cast<std::size_t>(slot - first_)] = {tag, batch};
  }

 private:
  struct Row {
    std::optional<std::uint64_t> tag;
    std::uint32_t last_batch = 0;
  };
  std::int64_t first_;
  std::vector<Row> rows_;
};

TEST(DeviceResolve, AKeyHasOneRowWhateverBatchesAreUnfinished) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t num_sets : {1, 3}) {
    for_each_schedule([&] {
      Twins twins({num_sets, 150}, EvictionPolicy::kLfu, 400);
      OverflowRows rows(num_sets * CacheSize::kWays, 150);
      Random random(static_cast<std::uint64_t>(num_sets));
      std::int64_t shared_hits = 0;
      std::vector<std::map<std::uint64_t, std::int32_t>> slots_of(13);  // by batch
      for (std::uint32_t b = 1; b <= 12; ++b) {
        const std::uint32_t completed = b > 3 ? b - 3 : 0;
        const auto batch = random_batch(
            {.num_examples = 20, .max_bag = 8, .distinct_ids = num_sets * 80, .dim = 4}, b);
        const auto overflow = rows.offer(100, completed, random);
        const auto found = twins.resolve(batch, {.batch = b, .completed = completed}, overflow);
        twins.dirty(found);
        const auto tags = make_host_plan(batch).tags;
        for (std::size_t u = 0; u < tags.size(); ++u) {
          if (found.slots[u] < 0) continue;
          rows.hold(tags[u], found.slots[u], b);
          slots_of[b][tags[u]] = found.slots[u];
          shared_hits += overflow.shared.count(tags[u]) != 0 ? 1 : 0;
          for (std::uint32_t earlier = completed + 1; earlier < b; ++earlier) {
            const auto other = slots_of[earlier].find(tags[u]);
            if (other == slots_of[earlier].end()) continue;
            ASSERT_EQ(other->second, found.slots[u]) << "a key of batches " << earlier << ", " << b;
          }
        }
      }
      EXPECT_GT(shared_hits, 10);
      twins.compare_bookkeeping();
    });
  }
}

TEST(DeviceResolve, ArgumentsThatCannotBeAreRefused) {
  SATRAP_NEEDS_DEVICE();
  Twins twins({1, 4}, EvictionPolicy::kLru, 8);
  EXPECT_THROW(twins.resolve(batch_of({1}), {.batch = 2, .completed = 2}), Error);
  EXPECT_THROW(twins.resolve(batch_of({1}), {.batch = 2}, twins.rows(0, 5)), Error);
  auto three = twins.rows(0, 3);
  three.shared = {{7, 35}, {8, 36}};
  EXPECT_THROW(twins.resolve(batch_of({1}), {.batch = 2}, three), Error);
}

}  // namespace
}  // namespace satrap::testing
