#include <gtest/gtest.h>

#include "satrap/data/synthetic.h"
#include "tests/data/synthetic_fixture.h"

namespace satrap::data {
namespace {

TEST(Synthetic, NumbersAreIntegersWithTheGivenShareMissing) {
  const Rows rows = generate(small_config(), 0, 20'000);
  std::vector<double> missing(3, 0.0);
  for (std::size_t c = 0; c < 3; ++c) {
    for (const double value : rows.block.numeric[c]) {
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

/// Largest difference of p among rows with the same ids (`same_ids`), or else the same numbers.
double spread_of_p(const Rows& rows, bool same_ids) {
  std::map<std::vector<std::uint64_t>, std::pair<float, float>> range;
  for (std::size_t r = 0; r < rows.probabilities.size(); ++r) {
    std::vector<std::uint64_t> key;
    if (same_ids) {
      for (const auto& bags : rows.block.bags) key.push_back(bags.ids[r]);
    } else {
      for (const auto& column : rows.block.numeric) {
        key.push_back(std::bit_cast<std::uint64_t>(column[r]));
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
