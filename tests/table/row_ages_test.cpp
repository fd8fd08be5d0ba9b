#include "src/table/row_ages.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace satrap::table {
namespace {

using Numbers = std::vector<std::int64_t>;

/// The `place`-th key of a group of ids. Groups 0 to 63 make partition 0.
Key key_in_group(std::uint64_t group, std::uint64_t place) {
  return static_cast<Key>((group << (kIdBits - RowAges::kGroupBits)) | place);
}

/// Partition 0 of the only shard, with the keys of its rows by number.
class AgedRows {
 public:
  explicit AgedRows(const RowLimits& limits, std::int64_t num_shards = 1)
      : ages_(limits, 0, num_shards) {}

  void add(Key key, std::int64_t number, std::int64_t step) {
    keys_[number] = key;
    ages_.add(key, number, step);
  }

  /// Numbers of the rows that are evicted, in the order of their keys.
  Numbers choose(std::int64_t step) {
    Numbers numbers;
    std::vector<Key> keys;
    for (const RowAges::Row& row :
         ages_.choose(step, [&](std::int64_t number) { return keys_.at(number); })) {
      EXPECT_EQ(row.key, keys_.at(row.number));
      numbers.push_back(row.number);
      keys.push_back(row.key);
    }
    EXPECT_TRUE(std::ranges::is_sorted(keys));
    return numbers;
  }

  RowAges& ages() { return ages_; }

 private:
  RowAges ages_;
  std::map<std::int64_t, Key> keys_;
};

TEST(RowAges, NothingIsEvictedFromNothing) {
  AgedRows rows({.capacity_rows = 1, .ttl_steps = 1});
  EXPECT_EQ(rows.choose(1), Numbers{});
  EXPECT_EQ(rows.choose(2), Numbers{});
}

TEST(RowAges, ARowIsEvictedWhenItsAgeIsTheLimit) {
  AgedRows rows({.ttl_steps = 16});
  rows.add(key_in_group(0, 1), 0, 5);
  EXPECT_EQ(rows.ages().step_of(0), 5);
  EXPECT_EQ(rows.choose(20), Numbers{});
  EXPECT_EQ(rows.choose(21), Numbers{0});
  EXPECT_EQ(rows.choose(22), Numbers{}) << "an evicted row is forgotten";
}

TEST(RowAges, AUseMakesARowYoungAgain) {
  AgedRows rows({.ttl_steps = 16});
  rows.add(key_in_group(0, 1), 0, 5);
  rows.ages().touch(0, 10);
  EXPECT_EQ(rows.ages().step_of(0), 10);
  EXPECT_EQ(rows.choose(25), Numbers{});
  EXPECT_EQ(rows.choose(26), Numbers{0});
}

TEST(RowAges, ANumberThatWasEvictedMayGetAnotherRow) {
  AgedRows rows({.ttl_steps = 16});
  rows.add(key_in_group(0, 1), 0, 1);
  EXPECT_EQ(rows.choose(17), Numbers{0});
  rows.add(key_in_group(3, 9), 0, 17);
  EXPECT_EQ(rows.choose(32), Numbers{});
  EXPECT_EQ(rows.choose(33), Numbers{0});
}

TEST(RowAges, PinnedRowsStayWhateverTheLimitsAre) {
  AgedRows rows({.capacity_rows = 1, .ttl_steps = 2, .pinned_steps = 10});
  for (std::int64_t n = 0; n < 5; ++n) {
    rows.add(key_in_group(0, static_cast<std::uint64_t>(n)), n, 1);
  }
  for (std::int64_t step = 2; step <= 10; ++step) EXPECT_EQ(rows.choose(step), Numbers{});
  EXPECT_EQ(rows.choose(11), (Numbers{0, 1, 2, 3, 4}));
}

TEST(RowAges, EvictedRowsAreInTheOrderOfTheirKeys) {
  AgedRows rows({.ttl_steps = 1});
  rows.add(key_in_group(2, 0), 0, 1);
  rows.add(key_in_group(0, 9), 1, 1);
  rows.add(key_in_group(0, 5), 2, 1);
  EXPECT_EQ(rows.choose(2), (Numbers{2, 1, 0}));
}

constexpr std::int64_t kShare = 16;  // rows of a group
constexpr RowLimits kShareOfGroups = {.capacity_rows = kShare << RowAges::kGroupBits};

TEST(RowAges, AFullGroupIsLeftAlone) {
  AgedRows rows(kShareOfGroups);
  for (std::int64_t n = 0; n < kShare; ++n) {
    rows.add(key_in_group(0, static_cast<std::uint64_t>(n)), n, n + 1);
  }
  rows.add(key_in_group(1, 0), kShare, 1);
  EXPECT_EQ(rows.choose(100), Numbers{});
}

TEST(RowAges, AGroupBeyondItsShareEvictsTheOldest) {
  AgedRows rows(kShareOfGroups);
  for (std::int64_t n = 0; n <= kShare; ++n) {  // the last ones are the oldest
    rows.add(key_in_group(0, static_cast<std::uint64_t>(n)), n, 50 - n);
  }
  rows.add(key_in_group(1, 0), kShare + 1, 1);  // older, in a group with room
  const Numbers evicted = rows.choose(100);
  // 1/16 to 3/16 less than the share of 16 stay: 15 or 14 of 17.
  ASSERT_TRUE(evicted.size() == 2 || evicted.size() == 3) << evicted.size();
  Numbers oldest;
  for (auto n = kShare + 1 - std::ssize(evicted); n <= kShare; ++n) oldest.push_back(n);
  EXPECT_EQ(evicted, oldest);
  EXPECT_EQ(rows.choose(101), Numbers{});
}

TEST(RowAges, AtEqualAgeTheLowestIdsGo) {
  AgedRows rows(kShareOfGroups);
  for (std::int64_t n = 0; n <= kShare; ++n) {
    rows.add(key_in_group(0, static_cast<std::uint64_t>(kShare - n)), n, 1);
  }
  const Numbers evicted = rows.choose(100);
  ASSERT_GE(evicted.size(), 2U);
  for (std::size_t i = 0; i < evicted.size(); ++i) {
    EXPECT_EQ(evicted[i], kShare - static_cast<std::int64_t>(i));
  }
}

TEST(RowAges, WhatIsPinnedCountsButStays) {
  AgedRows rows({.capacity_rows = kShareOfGroups.capacity_rows, .pinned_steps = 5});
  for (std::int64_t n = 0; n < 2 * kShare; ++n) {
    rows.add(key_in_group(0, static_cast<std::uint64_t>(n)), n, n == 7 ? 95 : 98);
  }
  EXPECT_EQ(rows.choose(100), Numbers{7});
}

TEST(RowAges, OneOfTwoShardsChoosesTheSameRows) {
  const RowLimits limits = {.capacity_rows = kShareOfGroups.capacity_rows, .ttl_steps = 160};
  AgedRows whole(limits), half(limits, 2);
  std::mt19937_64 random(1);
  // Groups 0 to 31 are partition 0 of the first of two shards, and half of that of the only one.
  for (std::int64_t n = 0; n < 800; ++n) {
    const Key key = key_in_group(random() % 32, static_cast<std::uint64_t>(n));
    const auto step = static_cast<std::int64_t>(random() % 50 + 1);
    whole.add(key, n, step);
    half.add(key, n, step);
  }
  std::size_t num_evicted = 0;
  for (std::int64_t step = 51; step < 250; ++step) {
    const Numbers evicted = whole.choose(step);
    ASSERT_EQ(half.choose(step), evicted) << step;
    num_evicted += evicted.size();
  }
  EXPECT_EQ(num_evicted, 800U);
}

TEST(RowAges, EveryRowGoesAtItsAgeOrASixteenthLater) {
  constexpr std::int64_t kTtl = 64;
  AgedRows rows({.ttl_steps = kTtl});
  std::mt19937_64 random(1);
  std::map<std::int64_t, std::int64_t> last_use;  // of rows that are there
  std::int64_t next_number = 0;
  for (std::int64_t step = 1; step < 600; ++step) {
    for (const std::int64_t number : rows.choose(step)) {
      ASSERT_LE(last_use.at(number) + kTtl, step);
      last_use.erase(number);
    }
    for (const auto& [number, last] : last_use) ASSERT_LT(step, last + kTtl + kTtl / 16) << number;
    for (int i = 0; i < 3; ++i) {
      rows.add(key_in_group(random() % 64, random() % 1000), next_number, step);
      last_use[next_number++] = step;
    }
    for (auto& [number, last] : last_use) {
      if (random() % 100 != 0) continue;
      rows.ages().touch(number, step);
      last = step;
    }
  }
  EXPECT_GT(next_number, 5 * std::ssize(last_use)) << "hardly anything was evicted";
}

TEST(RowAges, MemoryGrowsWithTheRows) {
  AgedRows rows({.ttl_steps = 1});
  const std::int64_t empty = rows.ages().resident_bytes();
  for (std::int64_t n = 0; n < 1000; ++n) {
    rows.add(key_in_group(0, static_cast<std::uint64_t>(n)), n, 1);
  }
  EXPECT_GE(rows.ages().resident_bytes() - empty, 1000 * 8);  // an age and a place in a list
  EXPECT_LE(rows.ages().resident_bytes() - empty, 1000 * 16);
}

}  // namespace
}  // namespace satrap::table
