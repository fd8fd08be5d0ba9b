#include "src/embedding/numbered_keys.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::embedding {
namespace {

using Pairs = std::vector<std::pair<Key, std::int64_t>>;

NumberedKeys keys_of(const Pairs& pairs) {
  NumberedKeys keys;
  for (const auto& [key, number] : pairs) keys.add(key, number);
  return keys;
}

Pairs pairs_of(const NumberedKeys& keys) {
  Pairs pairs;
  for (std::size_t i = 0; i < static_cast<std::size_t>(keys.size()); ++i) {
    pairs.emplace_back(keys.key(i), static_cast<std::int64_t>(keys.number(i)));
  }
  return pairs;
}

/// Few ids and tables, so that keys come twice.
Pairs random_pairs(std::mt19937_64& random, std::int64_t count) {
  Pairs pairs;
  for (std::int64_t i = 0; i < count; ++i) {
    pairs.emplace_back(make_key(static_cast<TableId>(random() % 3), random() % 500), i);
  }
  return pairs;
}

TEST(NumberedKeys, AreSortedByKeyAndThenInTheOrderOfAddition) {
  std::mt19937_64 random(1);
  for (const std::int64_t count : {0, 1, 2, 25, 1000, 5000}) {
    Pairs expected = random_pairs(random, count);
    NumberedKeys keys = keys_of(expected);
    keys.sort();
    std::ranges::stable_sort(expected, {}, [](const auto& pair) { return pair.first; });
    EXPECT_EQ(pairs_of(keys), expected) << count;
  }
}

TEST(NumberedKeys, AreEmptyOnceCleared) {
  NumberedKeys keys = keys_of({{make_key(TableId{0}, 1), 7}});
  keys.clear();
  keys.sort();
  EXPECT_EQ(keys.size(), 0);
  EXPECT_EQ(keys.find(make_key(TableId{0}, 1), 0), 0U);
}

TEST(NumberedKeys, TheFirstPlaceIsFoundFromAnyPlaceBefore) {
  std::mt19937_64 random(2);
  for (const std::int64_t count : {1, 2, 3, 100, 1000}) {
    NumberedKeys keys = keys_of(random_pairs(random, count));
    keys.sort();
    const Pairs sorted = pairs_of(keys);
    for (int i = 0; i < 200; ++i) {
      const Key key = random_pairs(random, 1)[0].first;
      const std::size_t from = random() % (sorted.size() + 1);
      const auto at =
          std::ranges::lower_bound(sorted.begin() + static_cast<std::ptrdiff_t>(from), sorted.end(),
                                   key, {}, [](const auto& pair) { return pair.first; });
      ASSERT_EQ(keys.find(key, from), static_cast<std::size_t>(at - sorted.begin()));
    }
  }
}

}  // namespace
}  // namespace satrap::embedding
