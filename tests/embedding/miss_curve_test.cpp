#include "src/embedding/miss_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::embedding {
namespace {

using Batches = std::vector<std::vector<Key>>;

/// Ids of a Zipf-like distribution, some of them several times in a batch.
Batches random_batches(int num_batches, int num_keys, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Batches batches(static_cast<std::size_t>(num_batches));
  for (std::vector<Key>& batch : batches) {
    for (int i = 0; i < num_keys; ++i) {
      const double u = std::uniform_real_distribution(0.0, 1.0)(random);
      batch.push_back(make_key(TableId{0}, static_cast<std::uint64_t>(std::exp(u * 9.0))));
    }
  }
  return batches;
}

/// Misses of a cache of so many rows that evicts the row needed longest ago; of all uses.
double lru_misses(const Batches& batches, std::size_t num_rows) {
  std::list<Key> order;  // newest first
  std::map<Key, std::list<Key>::iterator> places;
  double uses = 0.0, misses = 0.0;
  for (const std::vector<Key>& batch : batches) {
    std::set<Key> seen;
    for (const Key key : batch) {
      if (!seen.insert(key).second) continue;
      ++uses;
      if (const auto found = places.find(key); found != places.end()) {
        order.erase(found->second);
      } else {
        ++misses;
      }
      order.push_front(key);
      places[key] = order.begin();
      if (order.size() > num_rows) {
        places.erase(order.back());
        order.pop_back();
      }
    }
  }
  return misses / uses;
}

constexpr std::int64_t kRowBytes = 64;

void add_all(MissCurve& curve, const Batches& batches) {
  std::uint32_t number = 0;
  for (const std::vector<Key>& batch : batches) curve.add(++number, batch, kRowBytes);
}

TEST(MissCurve, WithAllKeysIsThatOfAnLruCache) {
  const Batches batches = random_batches(60, 200, 1);
  MissCurve curve(1 << 20, 0);
  add_all(curve, batches);
  const auto points = curve.points();
  ASSERT_GE(points.size(), 5U);
  for (const auto& point : points) {
    // A cache that misses a row although it is as large as the rows since: not in this model.
    const auto rows = static_cast<std::size_t>(point.cache_bytes / kRowBytes);
    if (rows < 4) continue;
    EXPECT_NEAR(point.miss_rate, lru_misses(batches, rows - 1), 0.01) << rows << " rows";
  }
}

TEST(MissCurve, OfASampleIsNearlyTheSame) {
  const Batches batches = random_batches(400, 400, 2);
  MissCurve whole(1 << 20, 0), sampled(600, 2);
  add_all(whole, batches);
  add_all(sampled, batches);
  for (const auto& point : whole.points()) {
    for (const auto& other : sampled.points()) {
      if (other.cache_bytes != point.cache_bytes || point.cache_bytes < 16384) continue;
      EXPECT_NEAR(other.miss_rate, point.miss_rate, 0.1) << point.cache_bytes;
    }
  }
}

TEST(MissCurve, WithoutReuseAllRowsAreMissedByAnyCache) {
  MissCurve curve(100, 0);
  EXPECT_TRUE(curve.points().empty());
  EXPECT_EQ(curve.halving_bytes(1000), 0);
  for (std::uint32_t b = 1; b <= 50; ++b) {
    const std::vector<Key> keys = {make_key(TableId{0}, 2 * b), make_key(TableId{1}, 2 * b + 1)};
    curve.add(b, keys, kRowBytes);
  }
  for (const auto& point : curve.points()) EXPECT_EQ(point.miss_rate, 1.0);
  EXPECT_EQ(curve.halving_bytes(1000), 0);
}

TEST(MissCurve, ARepeatedKeyOfABatchIsOneUse) {
  MissCurve curve(100, 0);
  const Key key = make_key(TableId{0}, 7);
  const std::vector<Key> keys = {key, key, key};
  curve.add(1, keys, kRowBytes);
  curve.add(2, keys, kRowBytes);
  const auto points = curve.points();
  ASSERT_FALSE(points.empty());
  EXPECT_EQ(points.back().miss_rate, 0.5);  // one first use, one reuse
}

TEST(MissCurve, TheHalvingSizeIsTheFirstThatMissesHalfAsOftenBeyondFirstUses) {
  // A loop over 64 rows: an LRU cache of fewer misses all, one of 64 rows none but the first.
  MissCurve curve(1000, 0);
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < 64; ++i) keys.push_back(make_key(TableId{0}, i));
  for (std::uint32_t b = 1; b <= 20; ++b) curve.add(b, keys, kRowBytes);
  const std::int64_t halving = curve.halving_bytes(8 * kRowBytes);
  EXPECT_GE(halving, 64 * kRowBytes);
  EXPECT_LE(halving, 4 * 64 * kRowBytes);
  EXPECT_EQ(curve.halving_bytes(halving), 0);  // it misses no more than it must
}

}  // namespace
}  // namespace satrap::embedding
