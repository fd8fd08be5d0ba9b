#include "satrap/kernels/sort_unique.h"

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

using Generator = std::function<std::uint64_t(std::mt19937_64&)>;

bool operator_equal(const KeyOccurrence& a, const KeyOccurrence& b) {
  return a.key == b.key && a.position == b.position && a.offset == b.offset;
}

/// Checks sort_by_key on `size` keys of `generate` against std::stable_sort.
void expect_sorts_as_stable_sort(std::size_t size, const Generator& generate) {
  std::mt19937_64 random(size);
  std::vector<KeyOccurrence> items(size), scratch(size);
  for (std::size_t i = 0; i < size; ++i) {
    items[i] = {static_cast<Key>(generate(random)), static_cast<std::uint32_t>(i),
                static_cast<std::uint32_t>(3 * i)};
  }
  std::vector<KeyOccurrence> expected = items;
  std::ranges::sort(expected, {}, [](const KeyOccurrence& item) {
    return std::pair(item.key, item.position);  // positions ascend
  });
  sort_by_key(items, scratch);
  EXPECT_TRUE(std::equal(items.begin(), items.end(), expected.begin(), operator_equal))
      << size << " items";
}

struct Distribution {
  const char* name;
  Generator generate;
};
void PrintTo(const Distribution& d, std::ostream* out) { *out << d.name; }

class SortByKey : public testing::TestWithParam<Distribution> {};

TEST_P(SortByKey, AgreesWithStableSort) {
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 2, 3, 24, 25, 26, 100, 1000, 5000, 70000}) {
    expect_sorts_as_stable_sort(size, GetParam().generate);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Distributions,
    SortByKey,
    testing::Values(
        Distribution{"uniform", [](auto& random) { return random(); }},
        Distribution{"all_equal", [](auto&) { return 42U; }},
        Distribution{"few_mixed_keys", [](auto& random) { return mix_id(random() % 5); }},
        Distribution{"hot_key_among_others",
                     [](auto& random) { return random() % 2 == 0 ? mix_id(7) : mix_id(random()); }},
        // Only the lowest bits differ, or the highest and the lowest.
        Distribution{"low_bits", [](auto& random) { return (1ULL << 60) + random() % 4; }},
        Distribution{"two_hot_keys_that_differ_in_the_lowest_bit",
                     [](auto& random) {
                       return random() % 10 == 0 ? random() : (1ULL << 59) + random() % 2;
                     }},
        Distribution{"runs_that_agree_in_the_high_bits",
                     [](auto& random) { return ((random() % 8) << 61) + random() % 100000; }}));

TEST(SortByKeyTest, RefusesScratchOfAnotherSize) {
  std::vector<KeyOccurrence> items(3), scratch(2);
  EXPECT_THROW(sort_by_key(items, scratch), Error);
}

TEST(CountDistinct, CountsKeysAndGroups) {
  const auto at = [](std::uint64_t key) { return KeyOccurrence{static_cast<Key>(key), 0, 0}; };
  EXPECT_EQ(count_distinct({}, 4).keys, 0);
  EXPECT_EQ(count_distinct({}, 4).groups, 0);
  const std::vector<KeyOccurrence> items = {at(0x10), at(0x10), at(0x11), at(0x1F), at(0x20)};
  EXPECT_EQ(count_distinct(items, 4).keys, 4);
  EXPECT_EQ(count_distinct(items, 4).groups, 2);
}

}  // namespace
}  // namespace satrap
