#include "satrap/data/synthetic.h"

#include <gtest/gtest.h>

#include "tests/data/synthetic_fixture.h"

namespace satrap::data {
namespace {

TEST(Synthetic, FillsTheColumnsOfTheConfig) {
  const Rows rows = generate(small_config(), 700, 600);
  EXPECT_EQ(rows.block.num_rows, 600);
  EXPECT_EQ(rows.block.first_row, 700);
  EXPECT_EQ(rows.block.labels.size(), 600U);
  EXPECT_EQ(rows.probabilities.size(), 600U);
  ASSERT_EQ(rows.block.numeric.size(), 3U);
  for (const auto& column : rows.block.numeric) EXPECT_EQ(column.size(), 600U);
  ASSERT_EQ(rows.block.bags.size(), 4U);
  for (const auto& bags : rows.block.bags) {
    EXPECT_EQ(bags.offsets.size(), 601U);
    EXPECT_EQ(bags.offsets.back(), 600);
    EXPECT_EQ(bags.ids.size(), 600U);
    EXPECT_TRUE(bags.weights.empty());
  }
}

TEST(Synthetic, NoRowsAreAnEmptyBlock) {
  const Rows rows = generate(small_config(), 5, 0);
  EXPECT_EQ(rows.block.num_rows, 0);
  EXPECT_TRUE(rows.block.labels.empty());
  for (const auto& bags : rows.block.bags) EXPECT_EQ(bags.offsets.size(), 1U);
}

TEST(Synthetic, RowsDoNotDependOnHowTheRangeIsCut) {
  SyntheticConfig config = small_config();
  config.min_ids = {1, 0, 2, 1};
  config.max_ids = {1, 5, 3, 1};
  config.empty_rate = {0.0, 0.0, 0.1, 0.2};
  config.drift = 0.5;
  config.new_id_rate = 0.1;
  const SyntheticGenerator generator(config);
  Rows whole;
  generator.generate(0, 2000, whole.block, &whole.probabilities);
  std::vector<std::uint64_t> cut;
  const RandomStream random{3};
  for (std::int64_t row = 0; row < 2000;) {
    const auto size = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(row), 600));
    Rows piece;
    generator.generate(row, std::min(size + 1, 2000 - row), piece.block, &piece.probabilities);
    const auto rows = content(piece);
    cut.insert(cut.end(), rows.begin(), rows.end());
    row += piece.block.num_rows;
  }
  EXPECT_EQ(cut, content(whole));
}

TEST(Synthetic, MoreRowsAreTheSameRowsAndMore) {
  SyntheticConfig longer = small_config();
  longer.rows *= 7;
  EXPECT_EQ(content(generate(small_config(), 300, 400)), content(generate(longer, 300, 400)));
}

TEST(Synthetic, AnotherSeedIsAnotherLog) {
  SyntheticConfig other = small_config();
  other.seed = 2;
  EXPECT_NE(content(generate(small_config(), 0, 10)), content(generate(other, 0, 10)));
}

TEST(Synthetic, HasTheSameBitsOnEveryMachine) {
  SyntheticConfig config;
  config.drift = 0.3;
  config.new_id_rate = 0.05;
  std::uint64_t digest = 0;
  for (const std::uint64_t value : content(generate(config, 999'000, 2000))) {
    digest = hash64(digest, value);
  }
  EXPECT_EQ(digest, 8917877331202771659ULL);
}

// --------------------------------------------------------------------------------------------- ids

TEST(Synthetic, DrawsExactlyAsManyIdsAsTheCardinality) {
  const Rows rows = generate(small_config(), 0, 20'000);
  EXPECT_EQ(count_ids(rows.block.bags[0]).size(), 10U);
  EXPECT_EQ(count_ids(rows.block.bags[1]).size(), 100U);
  EXPECT_EQ(count_ids(rows.block.bags[3]).size(), 20U);
}

TEST(Synthetic, PopularIdsHaveTheFrequenciesOfTheZipfLaw) {
  SyntheticConfig config = small_config();
  config.zipf = {1.0};
  const Rows rows = generate(config, 0, 200'000);
  std::vector<std::int64_t> counts;
  for (const auto& [id, count] : count_ids(rows.block.bags[1])) counts.push_back(count);
  std::ranges::sort(counts, std::greater<>());
  double harmonic = 0.0;
  for (int k = 1; k <= 100; ++k) harmonic += 1.0 / k;
  for (const int k : {1, 2, 3, 5, 10}) {
    const double expected = 200'000 / (k * harmonic);
    EXPECT_NEAR(static_cast<double>(counts[static_cast<std::size_t>(k) - 1]), expected,
                5 * std::sqrt(expected))
        << k;
  }
}

TEST(Synthetic, IdsSayNothingAboutTheirRank) {
  // If ids were ordered by rank, the most frequent half of 1000 ids would be the smaller half.
  const Rows rows = generate(small_config(), 0, 100'000);
  std::vector<std::pair<std::int64_t, std::uint64_t>> popular;
  for (const auto& [id, count] : count_ids(rows.block.bags[2])) popular.push_back({-count, id});
  std::ranges::sort(popular);
  popular.resize(400);
  const auto smaller =
      std::ranges::count_if(popular, [](auto& entry) { return entry.second < (1U << 31); });
  EXPECT_NEAR(static_cast<double>(smaller), 200.0, 50.0);
}

TEST(Synthetic, IdsOfDifferentFeaturesAreUnrelated) {
  SyntheticConfig config = small_config();
  config.cardinalities = {1000, 1000};
  const Rows rows = generate(config, 0, 20'000);
  const auto first = count_ids(rows.block.bags[0]), second = count_ids(rows.block.bags[1]);
  EXPECT_EQ(std::ranges::count_if(first, [&](auto& entry) { return second.contains(entry.first); }),
            0);
}

TEST(Synthetic, IdsTake32BitsUpToAThousandMillionAnd54BitsBeyond) {
  SyntheticConfig config;
  config.cardinalities = {1 << 30, (1 << 30) + 1};
  const SyntheticGenerator generator(config);
  EXPECT_FALSE(generator.wide_ids(0));
  EXPECT_TRUE(generator.wide_ids(1));
  RowBlock block;
  generator.generate(0, 10'000, block);
  EXPECT_LE(std::ranges::max(block.bags[0].ids), 0xFFFFFFFFU);
  EXPECT_LE(std::ranges::max(block.bags[1].ids), kIdMask);
  EXPECT_GT(std::ranges::max(block.bags[1].ids), kIdMask / 2);
}

TEST(Synthetic, ScalesToTrillionsOfIdsPerFeature) {
  SyntheticConfig config;
  config.cardinalities.assign(26, 6'250'000);
  config.scale = 1e6;
  config.zipf = {0.8};
  EXPECT_EQ(config.scaled_cardinality(25), 6'250'000'000'000);
  const Rows rows = generate(config, 0, 20'000);
  EXPECT_NEAR(mean(rows.block.labels), 0.256, 0.02);
  // The tail is so long that most ids occur once.
  EXPECT_GT(count_ids(rows.block.bags[7]).size(), 15'000U);
}

TEST(Synthetic, AScaleBelowOneLeavesAtLeastOneId) {
  SyntheticConfig config = small_config();
  config.scale = 0.01;
  EXPECT_EQ(config.scaled_cardinality(0), 1);
  EXPECT_EQ(config.scaled_cardinality(2), 10);
  const Rows rows = generate(config, 0, 5000);
  EXPECT_EQ(count_ids(rows.block.bags[0]).size(), 1U);
  EXPECT_EQ(count_ids(rows.block.bags[2]).size(), 10U);
}

TEST(Synthetic, BagsHaveSizesInTheGivenRange) {
  SyntheticConfig config = small_config();
  config.min_ids = {1, 0, 3, 1};
  config.max_ids = {1, 4, 3, 1};
  config.empty_rate = {0.0, 0.0, 0.0, 0.3};
  const Rows rows = generate(config, 0, 20'000);
  std::vector<std::map<std::int64_t, double>> share(4);
  for (std::size_t f = 0; f < 4; ++f) {
    const auto& offsets = rows.block.bags[f].offsets;
    for (std::size_t r = 0; r < 20'000; ++r) share[f][offsets[r + 1] - offsets[r]] += 1.0 / 20'000;
  }
  EXPECT_NEAR(share[0][1], 1.0, 1e-9);
  ASSERT_EQ(share[1].size(), 5U);
  for (std::int64_t size = 0; size <= 4; ++size) EXPECT_NEAR(share[1][size], 0.2, 0.015);
  EXPECT_NEAR(share[2][3], 1.0, 1e-9);
  EXPECT_NEAR(share[3][0], 0.3, 0.015);
  EXPECT_NEAR(share[3][1], 0.7, 0.015);
}

/// The `count` most frequent ids of feature 2.
std::set<std::uint64_t> popular_ids(const SyntheticConfig& config,
                                    std::int64_t first_row,
                                    std::size_t count) {
  const Rows rows = generate(config, first_row, 20'000);
  std::vector<std::pair<std::int64_t, std::uint64_t>> order;
  for (const auto& [id, times] : count_ids(rows.block.bags[2])) order.push_back({-times, id});
  std::ranges::sort(order);
  std::set<std::uint64_t> ids;
  for (std::size_t i = 0; i < count; ++i) ids.insert(order[i].second);
  return ids;
}

double share_of_popular_ids_kept(double drift) {
  SyntheticConfig config = small_config();
  config.rows = 10'000'000;
  config.drift = drift;
  const auto early = popular_ids(config, 0, 200);
  const auto late = popular_ids(config, config.rows - 20'000, 400);
  const auto kept = std::ranges::count_if(early, [&](auto id) { return late.contains(id); });
  return static_cast<double>(kept) / 200;
}

TEST(Synthetic, DriftReplacesItsShareOfThePopularIds) {
  EXPECT_NEAR(share_of_popular_ids_kept(0.0), 1.0, 0.05);
  EXPECT_NEAR(share_of_popular_ids_kept(0.4), 0.6, 0.1);
  EXPECT_NEAR(share_of_popular_ids_kept(1.0), 0.0, 0.02);  // some are replaced at the very end
}

TEST(Synthetic, DriftIsOverAfterTheTrainingRows) {
  SyntheticConfig config = small_config();
  config.drift = 1.0;
  config.cardinalities = {5, 5, 5, 5};
  const Rows at_end = generate(config, config.rows, 3000);
  const Rows later = generate(config, config.rows * 50, 3000);
  for (std::size_t f = 0; f < 4; ++f) {
    const auto end_ids = count_ids(at_end.block.bags[f]),
               later_ids = count_ids(later.block.bags[f]);
    EXPECT_EQ(end_ids.size(), 5U);
    for (const auto& [id, count] : later_ids) EXPECT_TRUE(end_ids.contains(id));
  }
}

TEST(Synthetic, NewIdsAreTheGivenShareAndOccurOnce) {
  SyntheticConfig config = small_config();
  config.new_id_rate = 0.07;
  config.max_ids = {3};
  const Rows rows = generate(config, 0, 20'000);
  const auto counts = count_ids(rows.block.bags[0]);  // 10 ids that occur often
  const auto once = std::ranges::count_if(counts, [](auto& entry) { return entry.second == 1; });
  EXPECT_EQ(std::ssize(counts) - once, 10);
  EXPECT_NEAR(static_cast<double>(once) / static_cast<double>(rows.block.bags[0].ids.size()), 0.07,
              0.005);
}

}  // namespace
}  // namespace satrap::data
