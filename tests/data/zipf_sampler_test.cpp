#include "src/data/generate/zipf_sampler.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap::data {
namespace {

std::vector<std::uint64_t> draw(const ZipfSampler& sampler,
                                std::size_t count,
                                std::uint64_t seed = 1) {
  const RandomStream random{seed};
  std::vector<std::uint64_t> bits, ranks(count);
  std::vector<double> scratch;
  for (std::size_t i = 0; i < count; ++i) bits.push_back(random.bits(i));
  sampler.sample(bits, ranks, scratch);
  return ranks;
}

/// Standard deviations between the number of hits and its expectation.
double z_score(std::int64_t hits, double probability, std::size_t draws) {
  const double expected = probability * static_cast<double>(draws);
  return (static_cast<double>(hits) - expected) / std::sqrt(expected * (1.0 - probability));
}

struct Case {
  std::int64_t size;
  double exponent;
};

class ZipfSamplerOf : public testing::TestWithParam<Case> {};

TEST_P(ZipfSamplerOf, DrawsRanksAsOftenAsTheTheorySays) {
  constexpr std::size_t kDraws = 1'000'000;
  const auto [size, exponent] = GetParam();
  std::vector<double> theory(static_cast<std::size_t>(size) + 1, 0.0);
  double total = 0.0;
  for (std::int64_t rank = 1; rank <= size; ++rank) {
    total += std::pow(static_cast<double>(rank), -exponent);
    theory[static_cast<std::size_t>(rank)] = total;  // of all ranks up to this one
  }
  const std::vector<std::uint64_t> ranks = draw(ZipfSampler(size, exponent), kDraws);
  EXPECT_GE(*std::ranges::min_element(ranks), 1U);
  EXPECT_LE(*std::ranges::max_element(ranks), static_cast<std::uint64_t>(size));
  for (std::uint64_t rank = 1; rank <= std::min<std::uint64_t>(8, theory.size() - 2); ++rank) {
    EXPECT_LT(std::abs(z_score(std::ranges::count(ranks, rank),
                               (theory[rank] - theory[rank - 1]) / total, kDraws)),
              4.0)
        << "rank " << rank;
  }
  for (std::uint64_t rank = 10; rank + 1 < theory.size(); rank *= 3) {
    const auto hits = std::ranges::count_if(ranks, [=](auto drawn) { return drawn <= rank; });
    EXPECT_LT(std::abs(z_score(hits, theory[rank] / total, kDraws)), 4.0) << "up to " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         ZipfSamplerOf,
                         testing::Values(Case{3, 0.8},
                                         Case{305, 1.0},
                                         Case{1000, 0.0},
                                         Case{93'145, 0.95},
                                         Case{1'000'000, 1.1},
                                         Case{1'000'000, 0.8},
                                         Case{1'000'000, 2.5}));

TEST(ZipfSampler, HasOneRankInASetOfOne) {
  for (const double exponent : {0.0, 0.9, 1.0, 3.0}) {
    for (const std::uint64_t rank : draw(ZipfSampler(1, exponent), 1000)) EXPECT_EQ(rank, 1U);
  }
}

TEST(ZipfSampler, ReachesTheFarEndOfTrillionsOfRanks) {
  constexpr std::int64_t kSize = 6'250'000'000'000;
  const std::vector<std::uint64_t> ranks = draw(ZipfSampler(kSize, 0.8), 100'000);
  // By the integral, P(rank > size / 2) = 1 - 2^-0.2 to within 0.1 %.
  const auto upper = std::ranges::count_if(ranks, [](auto rank) { return rank > kSize / 2; });
  EXPECT_NEAR(static_cast<double>(upper) / 100'000, 1 - std::pow(2.0, -0.2), 0.005);
  EXPECT_LE(*std::ranges::max_element(ranks), static_cast<std::uint64_t>(kSize));
}

TEST(ZipfSampler, IsAPureFunctionOfTheBits) {
  const ZipfSampler sampler(10'131'227, 0.93);
  const std::vector<std::uint64_t> together = draw(sampler, 1000);
  const RandomStream random{1};
  std::vector<double> scratch;
  for (std::size_t i = 0; i < together.size(); ++i) {
    const std::uint64_t bits = random.bits(i);
    std::uint64_t rank = 0;
    sampler.sample({&bits, 1}, {&rank, 1}, scratch);
    EXPECT_EQ(rank, together[i]);
  }
}

TEST(ZipfSampler, RefusesWhatItCannotSample) {
  EXPECT_THROW(ZipfSampler(0, 1.0), Error);
  EXPECT_THROW(ZipfSampler(10, -0.1), Error);
  EXPECT_THROW(ZipfSampler((std::int64_t{1} << 48) + 1, 1.0), Error);
}

}  // namespace
}  // namespace satrap::data
