#include "satrap/core/hash.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(Hash64, IsTheFinalizerOfSplitmix64) {
  // The first outputs of splitmix64 seeded with 0 (Vigna's reference program).
  EXPECT_EQ(hash64(0x9E3779B97F4A7C15ULL), 0xE220A8397B1DCDAFULL);
  EXPECT_EQ(hash64(2 * 0x9E3779B97F4A7C15ULL), 0x6E789E6AA1B965F4ULL);
  EXPECT_EQ(hash64(0), 0u);
}

TEST(Hash64, OfSeveralNumbersDependsOnEachAndOnTheirOrder) {
  const std::unordered_set<std::uint64_t> hashes = {
      hash64(1, 2),    hash64(2, 1),    hash64(1, 3),    hash64(0, 0),
      hash64(1, 2, 3), hash64(1, 3, 2), hash64(3, 2, 1), hash64(1, 2, 0),
  };
  EXPECT_EQ(hashes.size(), 8u);
}

TEST(HashBytes, MatchesPublishedXxh3) {
  // XXH3_64bits of no bytes with seed 0, as in the XXH3 specification's self test.
  EXPECT_EQ(hash_bytes(""), 0x2D06800538D394C2ULL);
  EXPECT_NE(hash_bytes("a"), hash_bytes("b"));
  EXPECT_EQ(hash_bytes(std::string(1000, 'x')), hash_bytes(std::string(1000, 'x')));
  EXPECT_NE(hash_bytes(std::string_view("a\0", 2)), hash_bytes("a"));
}

TEST(RunningHash, IsTheHashOfTheWholeHoweverItIsCut) {
  const std::string whole(1000, 'x');
  const std::span<const std::byte> bytes = std::as_bytes(std::span(whole));
  RunningHash hash;
  EXPECT_EQ(hash.digest(), hash_bytes(""));
  hash.update(bytes.first(1));
  hash.update(bytes.subspan(1, 0));
  hash.update(bytes.subspan(1, 700));
  EXPECT_EQ(hash.digest(), hash_bytes(whole.substr(0, 701)));
  hash.update(bytes.subspan(701));
  EXPECT_EQ(hash.digest(), hash_bytes(whole));
}

TEST(RandomStream, DrawsAreAPureFunctionOfStreamAndCounter) {
  const RandomStream a{hash64(1, 2)};
  const RandomStream same{hash64(1, 2)};
  const RandomStream other{hash64(1, 3)};
  EXPECT_EQ(a.bits(7), same.bits(7));
  EXPECT_NE(a.bits(7), a.bits(8));
  EXPECT_NE(a.bits(7), other.bits(7));
}

TEST(RandomStream, UniformStaysInRangeAndHasTheRightMean) {
  const RandomStream random{hash64(42)};
  constexpr int kDraws = 100'000;
  double sum = 0;
  double sum_double = 0;
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const float x = random.uniform(n);
    const double y = random.uniform_double(n);
    ASSERT_GE(x, 0.0F);
    ASSERT_LT(x, 1.0F);
    ASSERT_GE(y, 0.0);
    ASSERT_LT(y, 1.0);
    sum += static_cast<double>(x);
    sum_double += y;
  }
  const double five_sigma = 5 * 0.2887 / 316.2;  // sqrt(1/12) / sqrt(kDraws)
  EXPECT_NEAR(sum / kDraws, 0.5, five_sigma);
  EXPECT_NEAR(sum_double / kDraws, 0.5, five_sigma);
}

TEST(RandomStream, BelowReachesEveryValueAndNoOther) {
  const RandomStream random{hash64(5)};
  int counts[3] = {0, 0, 0};
  for (std::uint64_t n = 0; n < 3000; ++n) {
    const std::uint64_t x = random.below(n, 3);
    ASSERT_LT(x, 3u);
    ++counts[x];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 130);  // 5 sigma
  EXPECT_EQ(random.below(0, 1), 0u);
}

}  // namespace
}  // namespace satrap
