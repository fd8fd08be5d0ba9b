#include "satrap/table/sharding.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/table/table.h"

namespace satrap::table {
namespace {

Key key_with_mixed_id(std::uint64_t mixed) {
  return static_cast<Key>((std::uint64_t{5} << kIdBits) | mixed);
}

std::vector<Key> ascending_keys(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<Key> keys{key_with_mixed_id(0), key_with_mixed_id(kIdMask)};
  while (keys.size() < count) keys.push_back(key_with_mixed_id(random() & kIdMask));
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(Sharding, OneShardHasEverythingAndPositionsAreMixedIds) {
  for (const Key key : ascending_keys(1000)) {
    ASSERT_EQ(shard_of(key, 1), 0);
    ASSERT_EQ(position_in_shard(key, 1) >> (64 - kIdBits), mixed_id_of(key));
    ASSERT_EQ(partition_of(key),
              static_cast<std::int64_t>(mixed_id_of(key) >> (kIdBits - kPartitionBits)));
  }
}

TEST(Sharding, BordersAreWhereTheFractionSaysToTheId) {
  // Of 4 shards, the second begins at a quarter; of 3, at the first id not below a third.
  EXPECT_EQ(shard_of(key_with_mixed_id((kIdMask >> 2)), 4), 0);
  EXPECT_EQ(shard_of(key_with_mixed_id((kIdMask >> 2) + 1), 4), 1);
  const std::uint64_t third = (std::uint64_t{1} << kIdBits) / 3;  // rounded down
  EXPECT_EQ(shard_of(key_with_mixed_id(third), 3), 0);
  EXPECT_EQ(shard_of(key_with_mixed_id(third + 1), 3), 1);
  EXPECT_EQ(shard_of(key_with_mixed_id(kIdMask), 3), 2);
}

TEST(Sharding, ShardsAndPositionsAscendWithTheKey) {
  const std::vector<Key> keys = ascending_keys(20'000);
  for (const std::int64_t num_shards : {1, 2, 3, 5, 7, 64, 1000}) {
    for (std::size_t i = 1; i < keys.size(); ++i) {
      const std::int64_t before = shard_of(keys[i - 1], num_shards);
      const std::int64_t shard = shard_of(keys[i], num_shards);
      ASSERT_LE(before, shard);
      ASSERT_LT(shard, num_shards);
      if (before == shard && keys[i - 1] != keys[i]) {
        ASSERT_LT(position_in_shard(keys[i - 1], num_shards),
                  position_in_shard(keys[i], num_shards));
      }
    }
  }
}

TEST(Sharding, EveryNumberOfShardsFillsAllPartitionsEvenly) {
  constexpr std::int64_t kKeysPerPartition = 1000;
  for (const std::int64_t num_shards : {1, 2, 3, 6, 7}) {
    std::vector<std::vector<std::int64_t>> counts(static_cast<std::size_t>(num_shards),
                                                  std::vector<std::int64_t>(kPartitions, 0));
    const std::int64_t num_keys = num_shards * kPartitions * kKeysPerPartition;
    for (std::int64_t id = 0; id < num_keys; ++id) {  // consecutive ids, as in data sets
      const Key key = make_key(TableId{5}, static_cast<std::uint64_t>(id));
      ++counts[static_cast<std::size_t>(shard_of(key, num_shards))]
              [static_cast<std::size_t>(partition_of(key, num_shards))];
    }
    // Six standard deviations of a Poisson number.
    const double tolerance = 6.0 * std::sqrt(static_cast<double>(kKeysPerPartition));
    for (const auto& shard : counts) {
      for (const std::int64_t count : shard) {
        ASSERT_NEAR(static_cast<double>(count), kKeysPerPartition, tolerance) << num_shards;
      }
    }
  }
}

TEST(Sharding, ATableOfOneOfThreeShardsTakesNoMoreMemoryPerRowThanAWholeOne) {
  TableSpec spec;
  spec.name = "t";
  spec.id = TableId{5};
  spec.dim = 4;
  const auto bytes_per_row = [&](std::int64_t num_shards) {
    Table table(spec, 1, num_shards);
    std::vector<Key> keys;
    for (std::uint64_t id = 0; std::ssize(keys) < 200'000; ++id) {
      const Key key = make_key(TableId{5}, id);
      if (shard_of(key, num_shards) == num_shards - 1) keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<RowPointer> rows(keys.size());
    table.find_or_insert(keys, rows);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(header_of(rows[i]).key, keys[i]);
    return static_cast<double>(table.resident_bytes()) / static_cast<double>(keys.size());
  };
  const double whole = bytes_per_row(1);
  EXPECT_NEAR(bytes_per_row(3) / whole, 1.0, 0.1);
  EXPECT_NEAR(bytes_per_row(5) / whole, 1.0, 0.1);
}

}  // namespace
}  // namespace satrap::table
