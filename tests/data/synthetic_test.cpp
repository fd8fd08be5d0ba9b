#include "satrap/data/synthetic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "satrap/core/auc.h"
#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/ids.h"

namespace satrap::data {
namespace {

/// Four features and three numbers, small enough to count everything.
SyntheticConfig small_config() {
  SyntheticConfig config;
  config.rows = 20'000;
  config.cardinalities = {10, 100, 1000, 20};
  config.num_numeric = 3;
  config.numeric_missing = {0.0, 0.25, 1.0};
  return config;
}

struct Rows {
  RowBlock block;
  std::vector<float> probabilities;
};

Rows generate(const SyntheticConfig& config, std::int64_t first, std::int64_t count) {
  Rows rows;
  SyntheticGenerator(config).generate(first, count, rows.block, &rows.probabilities);
  return rows;
}

/// Appends everything a row says, bit for bit.
void append_row(const RowBlock& block, std::size_t row, std::vector<std::uint64_t>& out) {
  out.push_back(static_cast<std::uint64_t>(block.labels[row]));
  for (const auto& column : block.numeric) out.push_back(std::bit_cast<std::uint32_t>(column[row]));
  for (const auto& bags : block.bags) {
    out.push_back(0xBA6);
    out.insert(out.end(), bags.ids.begin() + bags.offsets[row],
               bags.ids.begin() + bags.offsets[row + 1]);
  }
}

std::vector<std::uint64_t> content(const Rows& rows) {
  std::vector<std::uint64_t> all;
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows.block.num_rows); ++r) {
    append_row(rows.block, r, all);
    all.push_back(std::bit_cast<std::uint32_t>(rows.probabilities[r]));
  }
  return all;
}

double mean(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

std::map<std::uint64_t, std::int64_t> count_ids(const RowBlock::Bags& bags) {
  std::map<std::uint64_t, std::int64_t> counts;
  for (const std::uint64_t id : bags.ids) ++counts[id];
  return counts;
}

// ---------------------------------------------------------------------- shape and reproducibility

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
  // Were ids ordered by rank, the most frequent half of 1000 ids would be the smaller half.
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
  // The tail is so long that most ids are met once.
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

// ----------------------------------------------------------------------------------------- numbers

TEST(Synthetic, NumbersAreIntegersWithTheGivenShareMissing) {
  const Rows rows = generate(small_config(), 0, 20'000);
  std::vector<double> missing(3, 0.0);
  for (std::size_t c = 0; c < 3; ++c) {
    for (const float value : rows.block.numeric[c]) {
      if (std::isnan(value)) {
        missing[c] += 1.0 / 20'000;
      } else {
        EXPECT_EQ(value, std::floor(value));
        EXPECT_GE(value, c == 1 ? -3.0F : 0.0F);
        EXPECT_LT(value, 0x1.0p24F);
      }
    }
  }
  EXPECT_EQ(missing[0], 0.0);
  EXPECT_NEAR(missing[1], 0.25, 0.015);
  EXPECT_NEAR(missing[2], 1.0, 1e-9);
}

// ------------------------------------------------------------------------------------------ labels

TEST(Synthetic, ReachesTheBaseRateAndTheSignal) {
  for (const double base_rate : {0.03, 0.256, 0.7}) {
    SyntheticConfig config = small_config();
    config.base_rate = base_rate;
    config.signal = 1.2;
    const Rows rows = generate(config, 0, 100'000);
    EXPECT_NEAR(mean(rows.probabilities), base_rate, 0.005);
    EXPECT_NEAR(mean(rows.block.labels), base_rate, 0.008);
    double sum = 0.0, squares = 0.0;
    for (const float p : rows.probabilities) {
      const double logit = std::log(static_cast<double>(p) / (1.0 - static_cast<double>(p)));
      sum += logit / 100'000;
      squares += logit * logit / 100'000;
    }
    EXPECT_NEAR(std::sqrt(squares - sum * sum), 1.2, 0.02);
  }
}

TEST(Synthetic, LabelsOccurAsOftenAsTheirProbabilitySays) {
  const Rows rows = generate(small_config(), 0, 200'000);
  std::vector<double> sum_p(10), sum_y(10), count(10);
  for (std::size_t r = 0; r < rows.probabilities.size(); ++r) {
    const auto bin = static_cast<std::size_t>(rows.probabilities[r] * 10.0F);
    sum_p[bin] += static_cast<double>(rows.probabilities[r]);
    sum_y[bin] += static_cast<double>(rows.block.labels[r]);
    count[bin] += 1.0;
  }
  for (std::size_t bin = 0; bin < 9; ++bin) {
    ASSERT_GT(count[bin], 500.0);
    EXPECT_NEAR(sum_y[bin] / count[bin], sum_p[bin] / count[bin], 2.5 / std::sqrt(count[bin]));
  }
}

TEST(Synthetic, WithoutSignalEveryRowHasTheBaseRate) {
  SyntheticConfig config = small_config();
  config.signal = 0.0;
  for (const float p : generate(config, 0, 1000).probabilities) EXPECT_NEAR(p, 0.256F, 1e-6F);
}

/// Largest difference of p among rows that agree in what `same` leaves them.
double spread_of_p(const Rows& rows, bool same_ids) {
  std::map<std::vector<std::uint64_t>, std::pair<float, float>> range;
  for (std::size_t r = 0; r < rows.probabilities.size(); ++r) {
    std::vector<std::uint64_t> key;
    if (same_ids) {
      for (const auto& bags : rows.block.bags) key.push_back(bags.ids[r]);
    } else {
      for (const auto& column : rows.block.numeric) {
        key.push_back(std::bit_cast<std::uint32_t>(column[r]));
      }
    }
    const float p = rows.probabilities[r];
    const auto [entry, first] = range.try_emplace(key, p, p);
    entry->second = {std::min(entry->second.first, p), std::max(entry->second.second, p)};
  }
  float widest = 0.0F;
  for (const auto& [key, p] : range) widest = std::max(widest, p.second - p.first);
  return static_cast<double>(widest);
}

TEST(Synthetic, SharesDecideWhatTheLabelDependsOn) {
  SyntheticConfig config = small_config();
  config.cardinalities = {3, 3};
  config.numeric_share = 0.0;
  EXPECT_EQ(spread_of_p(generate(config, 0, 3000), true), 0.0);
  config.numeric_share = 1.0;
  config.interaction_share = 0.0;
  EXPECT_EQ(spread_of_p(generate(config, 0, 3000), false), 0.0);
  EXPECT_GT(spread_of_p(generate(config, 0, 3000), true), 0.1);
}

TEST(Synthetic, InteractionsAreNotASumOverFeatures) {
  // In a sum, logit(a, c) - logit(b, c) would be the same for every c.
  SyntheticConfig config = small_config();
  config.cardinalities = {2, 2};
  config.num_numeric = 0;
  config.numeric_missing = {};
  config.numeric_share = 0.0;
  const auto nonadditive = [&](double share) {
    config.interaction_share = share;
    const Rows rows = generate(config, 0, 2000);
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> logit;
    for (std::size_t r = 0; r < 2000; ++r) {
      const auto p = static_cast<double>(rows.probabilities[r]);
      logit[{rows.block.bags[0].ids[r], rows.block.bags[1].ids[r]}] = std::log(p / (1 - p));
    }
    std::vector<double> corners;
    for (const auto& [ids, value] : logit) corners.push_back(value);
    EXPECT_EQ(corners.size(), 4U);
    return std::abs(corners[0] - corners[1] - corners[2] + corners[3]);
  };
  EXPECT_LT(nonadditive(0.0), 1e-5);
  EXPECT_GT(nonadditive(0.5), 0.1);
}

// ---------------------------------------------------------------------------------- best reachable

TEST(BestReachable, MatchesHandComputedValues) {
  BestReachableMeter meter;
  meter.add({0.25F, 0.75F}, {0, 1});
  meter.add({0.5F}, {0});
  const BestReachable best = meter.result();
  EXPECT_EQ(best.rows, 3);
  EXPECT_DOUBLE_EQ(best.base_rate, 1.0 / 3);
  EXPECT_DOUBLE_EQ(best.auc, 1.0);
  EXPECT_NEAR(best.logloss, -(2 * std::log(.75) + std::log(.5)) / 3, 1e-12);
  const double entropy = -.25 * std::log(.25) - .75 * std::log(.75);
  EXPECT_NEAR(best.expected_logloss, (2 * entropy + std::log(2.0)) / 3, 1e-12);
}

TEST(BestReachable, ComesOutAsExpectedOverTheLabels) {
  const Rows rows = generate(small_config(), 0, 200'000);
  BestReachableMeter meter;
  meter.add(rows.probabilities, rows.block.labels);
  const BestReachable best = meter.result();
  EXPECT_NEAR(best.auc, best.expected_auc, 0.005);
  EXPECT_NEAR(best.logloss, best.expected_logloss, 0.005);
  EXPECT_GT(best.auc, 0.75);
  EXPECT_EQ(best.auc, auc(rows.probabilities, rows.block.labels));
}

TEST(BestReachable, KeepsEveryStridethRowForTheAuc) {
  const Rows rows = generate(small_config(), 0, 50'000);
  BestReachableMeter all, some(4);
  all.add(rows.probabilities, rows.block.labels);
  some.add(rows.probabilities, rows.block.labels);
  EXPECT_EQ(some.result().rows, 50'000);
  EXPECT_EQ(some.result().logloss, all.result().logloss);
  EXPECT_NE(some.result().auc, all.result().auc);
  EXPECT_NEAR(some.result().auc, all.result().auc, 0.015);
}

TEST(BestReachable, IsApproachedAndNotBeatenByALogisticFit) {
  SyntheticConfig config = small_config();
  config.cardinalities = {20, 50, 10};
  config.num_numeric = 0;
  config.numeric_missing = {};
  config.numeric_share = 0.0;
  config.interaction_share = 0.0;
  const Rows train = generate(config, 0, 60'000), test = generate(config, 60'000, 60'000);
  std::vector<std::map<std::uint64_t, double>> weights(3);
  double bias = 0.0;
  const auto logit_of = [&](const RowBlock& block, std::size_t row) {
    double logit = bias;
    for (std::size_t f = 0; f < 3; ++f) logit += weights[f][block.bags[f].ids[row]];
    return logit;
  };
  for (const double rate : {0.1, 0.03, 0.01}) {
    for (std::size_t r = 0; r < train.block.labels.size(); ++r) {
      const double error = static_cast<double>(train.block.labels[r]) -
                           1.0 / (1.0 + std::exp(-logit_of(train.block, r)));
      bias += rate * error;
      for (std::size_t f = 0; f < 3; ++f) weights[f][train.block.bags[f].ids[r]] += rate * error;
    }
  }
  std::vector<float> scores;
  for (std::size_t r = 0; r < test.block.labels.size(); ++r) {
    scores.push_back(static_cast<float>(logit_of(test.block, r)));
  }
  const double best = auc(test.probabilities, test.block.labels);
  EXPECT_LT(auc(scores, test.block.labels), best + 0.0005);
  EXPECT_GT(auc(scores, test.block.labels), best - 0.005);
}

}  // namespace
}  // namespace satrap::data
