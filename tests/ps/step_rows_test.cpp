#include "src/ps/step_rows.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/table/sharding.h"

namespace satrap::ps {
namespace {

using Stretch = std::pair<std::int64_t, std::int64_t>;

/// The key of a table whose mixed id begins with the bits of `fraction` (of 64).
Key key_of_fraction(std::uint64_t table, std::uint64_t fraction) {
  return static_cast<Key>((table << kIdBits) | (fraction << (kIdBits - 6)));
}

TEST(AlignedBytes, HoldWhatWasAskedForAndNeverShrink) {
  AlignedBytes bytes;
  EXPECT_EQ(bytes.span().size(), 0U);
  EXPECT_EQ(bytes.resize(100).size(), 100U);
  std::byte* const first = bytes.span().data();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
  bytes.span()[0] = std::byte{7};
  EXPECT_EQ(bytes.resize(3).size(), 3U);
  EXPECT_EQ(bytes.resize(100).data(), first);
  EXPECT_EQ(bytes.span()[0], std::byte{7});
  EXPECT_EQ(bytes.resize(1000).size(), 1000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.span().data()) % 64, 0U);
  EXPECT_EQ(bytes.resize(0).size(), 0U);
}

TEST(StepRows, NoKeysAreNobodys) {
  StepRows::State state;
  const std::vector<std::int64_t> dims = {4, 2};
  state.divide({}, dims, 3);
  ASSERT_EQ(state.shards.size(), 3U);
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(state.shards[s].num_keys, 0);
    EXPECT_EQ(state.shards[s].num_values, 0);
    EXPECT_EQ(state.stretch(1, s), Stretch(0, 0));
  }
}

TEST(StepRows, EveryShardHasARangeOfEachTable) {
  const std::vector<Key> keys = {key_of_fraction(0, 0), key_of_fraction(0, 31),
                                 key_of_fraction(0, 32), key_of_fraction(1, 63)};
  const std::vector<std::int64_t> dims = {4, 2};
  StepRows::State state;
  state.divide(keys, dims, 2);
  EXPECT_EQ(state.stretch(0, 0), Stretch(0, 2));
  EXPECT_EQ(state.stretch(0, 1), Stretch(2, 3));
  EXPECT_EQ(state.stretch(1, 0), Stretch(3, 3));
  EXPECT_EQ(state.stretch(1, 1), Stretch(3, 4));
  EXPECT_EQ(state.shards[0].num_keys, 2);
  EXPECT_EQ(state.shards[0].num_values, 8);
  EXPECT_EQ(state.shards[1].num_keys, 2);
  EXPECT_EQ(state.shards[1].num_values, 6);
}

TEST(StepRows, ATableWithoutKeysHasEmptyRangesBetweenTheOthers) {
  const std::vector<Key> keys = {key_of_fraction(0, 1), key_of_fraction(2, 1)};
  const std::vector<std::int64_t> dims = {1, 1, 1};
  StepRows::State state;
  state.divide(keys, dims, 1);
  EXPECT_EQ(state.stretch(0, 0), Stretch(0, 1));
  EXPECT_EQ(state.stretch(1, 0), Stretch(1, 1));
  EXPECT_EQ(state.stretch(2, 0), Stretch(1, 2));
}

TEST(StepRows, AKeyOfATableThatIsNotThereIsABug) {
  const std::vector<Key> keys = {key_of_fraction(0, 1), key_of_fraction(2, 1)};
  const std::vector<std::int64_t> dims = {4, 2};
  StepRows::State state;
  EXPECT_THROW(state.divide(keys, dims, 2), Error);
}

TEST(StepRows, ValuesOfAShardStandInTheOrderOfItsKeysWithoutGaps) {
  const std::vector<Key> keys = {key_of_fraction(0, 0), key_of_fraction(0, 32),
                                 key_of_fraction(1, 1), key_of_fraction(1, 63)};
  const std::vector<std::int64_t> dims = {3, 2};
  StepRows::State state;
  state.divide(keys, dims, 2);
  float memory[2][5] = {};
  std::vector<float*> pointers(keys.size());
  state.fill_pointers(pointers, dims, [&](const StepRows::State::Shard& shard) {
    return memory[&shard - state.shards.data()];
  });
  EXPECT_EQ(pointers, (std::vector<float*>{memory[0], memory[1], memory[0] + 3, memory[1] + 3}));
}

TEST(StepRows, EveryKeyIsOnItsShardOnce) {
  std::mt19937_64 random(1);
  StepRows::State state;  // reused, as from step to step
  for (int step = 0; step < 100; ++step) {
    const std::vector<std::int64_t> dims = {4, 1, 8};
    const auto num_shards = static_cast<std::int64_t>(random() % 5 + 1);
    std::vector<Key> keys;
    for (std::uint64_t i = random() % 60; i-- > 0;) {
      keys.push_back(make_key(static_cast<TableId>(random() % 3), random()));
    }
    std::ranges::sort(keys);
    state.divide(keys, dims, num_shards);
    std::vector<std::int64_t> shard_of_key(keys.size(), -1), num_values(state.shards.size());
    for (std::size_t t = 0; t < dims.size(); ++t) {
      for (std::size_t s = 0; s < state.shards.size(); ++s) {
        const auto [begin, end] = state.stretch(t, s);
        for (std::int64_t u = begin; u < end; ++u) {
          const auto at = static_cast<std::size_t>(u);
          ASSERT_EQ(shard_of_key[at], -1);
          ASSERT_EQ(static_cast<std::size_t>(table_of(keys[at])), t);
          shard_of_key[at] = static_cast<std::int64_t>(s);
          num_values[s] += dims[t];
        }
      }
    }
    for (std::size_t u = 0; u < keys.size(); ++u) {
      ASSERT_EQ(shard_of_key[u], table::shard_of(keys[u], num_shards));
    }
    for (std::size_t s = 0; s < state.shards.size(); ++s) {
      ASSERT_EQ(state.shards[s].num_values, num_values[s]);
      ASSERT_EQ(state.shards[s].num_keys,
                std::ranges::count(shard_of_key, static_cast<std::int64_t>(s)));
    }
  }
}

}  // namespace
}  // namespace satrap::ps
