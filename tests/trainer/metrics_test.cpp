#include "satrap/trainer/metrics.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap::trainer {
namespace {

using Floats = std::vector<float>;

void expect_same(const Metrics& actual, const Metrics& expected) {
  EXPECT_EQ(actual.examples, expected.examples);
  EXPECT_NEAR(actual.auc, expected.auc, 1e-12);
  EXPECT_NEAR(actual.logloss, expected.logloss, 1e-12);
  EXPECT_NEAR(actual.ne, expected.ne, 1e-12);
  EXPECT_NEAR(actual.calibration, expected.calibration, 1e-12);
  EXPECT_NEAR(actual.ap, expected.ap, 1e-12);
  EXPECT_NEAR(actual.brier, expected.brier, 1e-12);
  EXPECT_NEAR(actual.weight, expected.weight, 1e-9);
}

/// The definitions, over the rows that count.
Metrics by_definition(const Floats& p, const Floats& y, const Floats& w) {
  Metrics m{.logloss = 0, .ap = 0, .brier = 0};
  double won = 0, positives = 0, negatives = 0, predicted = 0;
  const auto counts = [&](std::size_t i) { return w[i] > 0 && !std::isnan(y[i]); };
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!counts(i)) continue;
    const auto weight = static_cast<double>(w[i]), score = static_cast<double>(p[i]);
    const double of_label = y[i] == 1.0F ? score : 1 - score;
    ++m.examples;
    m.weight += weight;
    m.logloss -= weight * std::log(of_label);
    m.brier += weight * (1 - of_label) * (1 - of_label);
    predicted += weight * score;
    (y[i] == 1.0F ? positives : negatives) += weight;
    if (y[i] != 1.0F) continue;
    double above = 0, positives_above = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (!counts(j)) continue;
      const auto other = static_cast<double>(w[j]);
      if (p[j] >= p[i]) above += other;
      if (p[j] >= p[i] && y[j] == 1.0F) positives_above += other;
      if (y[j] == 0.0F && p[j] <= p[i]) won += weight * other * (p[j] == p[i] ? 0.5 : 1.0);
    }
    m.ap += weight * positives_above / above;
  }
  const double rate = positives / m.weight;
  m.logloss /= m.weight;
  m.brier /= m.weight;
  m.ap /= positives;
  m.auc = won / (positives * negatives);
  m.ne = m.logloss / -(rate * std::log(rate) + (1 - rate) * std::log(1 - rate));
  m.calibration = predicted / positives;
  return m;
}

struct RandomRows {
  Floats p, y, w;
  /// With ties, weights of 0 and, for an odd seed, missing labels.
  explicit RandomRows(std::uint64_t seed) {
    const RandomStream random{hash64(seed, 6)};
    for (std::uint64_t i = 0; i < 10 + 30 * seed; ++i) {
      p.push_back(static_cast<float>(1 + random.below(4 * i, 30)) / 32.0F);
      y.push_back(random.uniform(4 * i + 1) < 0.3F ? 1.0F : 0.0F);
      if (seed % 2 == 1 && random.uniform(4 * i + 2) < 0.2F) y.back() = std::nanf("");
      w.push_back(std::max(0.0F, random.uniform(4 * i + 3) * 2.0F - 0.4F));
    }
    y[0] = w[0] = w[1] = 1.0F;
    y[1] = 0.0F;
  }
};

TEST(Metrics, MatchHandComputedValues) {
  const Metrics m = compute_metrics({Floats{.75F, .5F, .25F, .25F}, Floats{1, 0, 0, 0}});
  const double logloss = -(std::log(.75) + std::log(.5) + 2 * std::log(.75)) / 4;
  EXPECT_EQ(m.examples, 4);
  EXPECT_DOUBLE_EQ(m.auc, 1.0);
  EXPECT_NEAR(m.logloss, logloss, 1e-12);
  EXPECT_NEAR(m.ne, logloss / -(.25 * std::log(.25) + .75 * std::log(.75)), 1e-12);
  EXPECT_DOUBLE_EQ(m.calibration, 1.75);
  EXPECT_DOUBLE_EQ(m.ap, 1.0);
  EXPECT_DOUBLE_EQ(m.brier, 4 * .0625 / 4 + (.25 - .0625) / 4);
  EXPECT_EQ(m.weight, 4.0);
}

TEST(Metrics, PredictingTheMeanLabelHasNormalisedEntropyAndCalibrationOne) {
  const Metrics m = compute_metrics({Floats{.25F, .25F, .25F, .25F}, Floats{0, 1, 0, 0}});
  EXPECT_DOUBLE_EQ(m.ne, 1.0);
  EXPECT_DOUBLE_EQ(m.calibration, 1.0);
  EXPECT_DOUBLE_EQ(m.auc, 0.5);
}

/// Numbers of scikit-learn 1.9.1 with sample_weight; the last but one example counts nowhere.
TEST(Metrics, WithWeightsAreThoseOfScikitLearn) {
  const Metrics m =
      compute_metrics(CountedRows({Floats{.75F, .5F, .25F, .125F, .5F, .875F},
                                   Floats{1, 0, 0, 1, 1, 0}, Floats{2, .5F, 1, 3, 0, .25F}},
                                  1, 0)
                          .rows());
  EXPECT_EQ(m.examples, 5);
  EXPECT_EQ(m.weight, 6.75);
  EXPECT_NEAR(m.logloss, 1.1804155286066342, 1e-12);
  EXPECT_NEAR(m.brier, 0.4149305555555556, 1e-12);
  EXPECT_NEAR(m.ap, 0.8, 1e-12);
  EXPECT_NEAR(m.auc, 0.34285714285714286, 1e-12);
}

TEST(Metrics, WithWeightsAgreeWithTheirDefinitionsInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    RandomRows rows(seed);
    // Two labels, of which the second is looked at: the first is missing everywhere.
    const auto found = [&] {
      Floats p, y;
      for (std::size_t i = 0; i < rows.p.size(); ++i) {
        p.insert(p.end(), {0.5F, rows.p[i]});
        y.insert(y.end(), {std::nanf(""), rows.y[i]});
      }
      return compute_metrics(CountedRows({p, y, rows.w}, 2, 1).rows());
    };
    const Metrics first = found();
    expect_same(first, by_definition(rows.p, rows.y, rows.w));
    for (Floats* values : {&rows.p, &rows.y, &rows.w}) std::ranges::reverse(*values);
    const Metrics reversed = found();
    EXPECT_EQ(reversed.logloss, first.logloss) << seed;
    EXPECT_EQ(reversed.calibration, first.calibration) << seed;
    EXPECT_EQ(reversed.ap, first.ap) << seed;
    EXPECT_EQ(reversed.brier, first.brier) << seed;
    EXPECT_EQ(reversed.weight, first.weight) << seed;
  }
}

TEST(Metrics, CertainAndWrongCostsTheClippedLoss) {
  const double worst = 23 * std::log(2.0);
  EXPECT_NEAR(compute_metrics({Floats{0.0F}, Floats{1}}).logloss, worst, 1e-9);
  EXPECT_NEAR(compute_metrics({Floats{1.0F}, Floats{0}}).logloss, worst, 1e-9);
  EXPECT_NEAR(compute_metrics({Floats{1.0F}, Floats{1}}).logloss, 0x1.0p-23, 1e-12);
}

TEST(Metrics, OneClassLeavesRankingUndefined) {
  const Metrics negatives = compute_metrics({Floats{.5F, .25F}, Floats{0, 0}});
  EXPECT_TRUE(std::isnan(negatives.auc));
  EXPECT_TRUE(std::isnan(negatives.ne));
  EXPECT_TRUE(std::isnan(negatives.calibration));
  EXPECT_NEAR(negatives.logloss, -(std::log(.5) + std::log(.75)) / 2, 1e-12);

  const Metrics positives = compute_metrics({Floats{.5F, .25F}, Floats{1, 1}});
  EXPECT_TRUE(std::isnan(positives.auc));
  EXPECT_TRUE(std::isnan(positives.ne));
  EXPECT_DOUBLE_EQ(positives.calibration, .375);
}

TEST(Metrics, NoExamplesLeaveEverythingUndefined) {
  for (const Metrics& m : {compute_metrics({}), WindowedMetrics(3).compute()}) {
    EXPECT_EQ(m.examples, 0);
    EXPECT_TRUE(std::isnan(m.auc) && std::isnan(m.logloss) && std::isnan(m.ne) &&
                std::isnan(m.calibration) && std::isnan(m.ap) && std::isnan(m.brier));
  }
}

TEST(Metrics, ANanPredictionMakesEverythingNan) {
  const Metrics m = compute_metrics({Floats{.5F, std::nanf("")}, Floats{1, 0}});
  EXPECT_TRUE(std::isnan(m.auc) && std::isnan(m.logloss) && std::isnan(m.ne) &&
              std::isnan(m.calibration) && std::isnan(m.ap) && std::isnan(m.brier));
}

TEST(Metrics, RefusesWrongSizesAndFractionalLabels) {
  EXPECT_THROW(compute_metrics({Floats{.5F}, Floats{}}), Error);
  EXPECT_THROW(compute_metrics({Floats{.5F}, Floats{.5F}}), Error);
  EXPECT_THROW(WindowedMetrics(0), Error);
}

TEST(Metrics, OfNumbersAreRootAndMeanOfTheirErrors) {
  // Errors 1, -2, 0 with weights 1, 2, 1.
  const Metrics m =
      compute_metrics({Floats{3, 2, 8}, Floats{2, 4, 8}, Floats{1, 2, 1}}, job::Loss::kMse);
  EXPECT_EQ(m.examples, 3);
  EXPECT_DOUBLE_EQ(m.weight, 4.0);
  EXPECT_DOUBLE_EQ(m.loss, 9.0 / 4);
  EXPECT_DOUBLE_EQ(m.rmse, 1.5);
  EXPECT_DOUBLE_EQ(m.mae, 5.0 / 4);
  // The mean label is 4.5, and the squares from it are 6.25 + 2 * 0.25 + 12.25.
  EXPECT_DOUBLE_EQ(m.r2, 1 - 9.0 / 19);
  EXPECT_TRUE(std::isnan(m.auc) && std::isnan(m.logloss));
}

TEST(Metrics, OfEqualNumbersHaveNoR2) {
  const Metrics m = compute_metrics({Floats{1, 2}, Floats{5, 5}}, job::Loss::kMse);
  EXPECT_TRUE(std::isnan(m.r2));
  EXPECT_DOUBLE_EQ(m.mae, 3.5);
  EXPECT_TRUE(std::isnan(compute_metrics({}, job::Loss::kMse).rmse));
  EXPECT_TRUE(
      std::isnan(compute_metrics({Floats{std::nanf(""), 1}, Floats{1, 2}}, job::Loss::kMse).rmse));
}

TEST(Metrics, OfClassesCountTheLikeliestAndTheEntropy) {
  // The label's probability, and the likeliest class.
  const Metrics m = compute_metrics(
      {Floats{.5F, 2, .25F, 0, .125F, 2}, Floats{2, 1, 1}, Floats{1, 2, 1}}, job::Loss::kSoftmax);
  EXPECT_EQ(m.examples, 3);
  EXPECT_DOUBLE_EQ(m.weight, 4.0);
  EXPECT_DOUBLE_EQ(m.accuracy, .25);
  const double logloss = (std::log(2) + 2 * std::log(4) + std::log(8)) / 4;
  EXPECT_NEAR(m.logloss, logloss, 1e-12);
  EXPECT_EQ(m.loss, m.logloss);
  EXPECT_NEAR(m.ne, logloss / -(.25 * std::log(.25) + .75 * std::log(.75)), 1e-12);
}

TEST(Metrics, OfOneClassHaveNoNe) {
  const Metrics m = compute_metrics({Floats{0, 1, 1, 2}, Floats{2, 2}}, job::Loss::kSoftmax);
  EXPECT_TRUE(std::isnan(m.ne));
  EXPECT_DOUBLE_EQ(m.accuracy, .5);
  EXPECT_NEAR(m.logloss, std::log(0x1.0p23) / 2, 1e-9) << "clipped";
  const Metrics nan = compute_metrics({Floats{std::nanf(""), 0}, Floats{0}}, job::Loss::kSoftmax);
  EXPECT_TRUE(std::isnan(nan.logloss) && std::isnan(nan.accuracy));
  EXPECT_THROW(compute_metrics({Floats{.5F}, Floats{0}}, job::Loss::kSoftmax), Error);
}

TEST(WindowedMetrics, OfClassesForgetTheOldestExamples) {
  WindowedMetrics window(2, 1, /*has_classes=*/true);
  window.add({Floats{.5F, 2, .25F, 0}, Floats{2, 1}});
  window.add({Floats{.125F, 1}, Floats{1}});
  const Metrics m = window.compute(0, 1.0, job::Loss::kSoftmax);
  EXPECT_EQ(m.examples, 2);
  EXPECT_DOUBLE_EQ(m.accuracy, .5);
  EXPECT_NEAR(m.logloss, (std::log(4) + std::log(8)) / 2, 1e-12);
}

TEST(WindowedMetrics, ForgetsTheOldestExamples) {
  WindowedMetrics window(3);
  window.add({Floats{.1F, .8F}, Floats{1, 1}});
  EXPECT_NEAR(window.compute().calibration, .45, 1e-6);
  window.add({Floats{.3F, .4F}, Floats{0, 0}});
  expect_same(window.compute(), compute_metrics({Floats{.8F, .3F, .4F}, Floats{1, 0, 0}}));
}

TEST(WindowedMetrics, ABatchLargerThanTheWindowLeavesItsEnd) {
  WindowedMetrics window(2);
  window.add({Floats{.5F}, Floats{1}});
  window.add({Floats{.1F, .2F, .3F, .4F}, Floats{1, 1, 0, 1}});
  expect_same(window.compute(), compute_metrics({Floats{.3F, .4F}, Floats{0, 1}}));
}

TEST(WindowedMetrics, KeepsTheLabelsOfARowApart) {
  WindowedMetrics window(3, 2);
  window.add({Floats{.9F, .1F, .8F, .2F}, Floats{1, 0, 1, 1}});
  window.add({Floats{.3F, .6F, .4F, .7F}, Floats{0, 1, 0, 0}});
  expect_same(window.compute(0), compute_metrics({Floats{.8F, .3F, .4F}, Floats{1, 0, 0}}));
  expect_same(window.compute(1), compute_metrics({Floats{.2F, .6F, .7F}, Floats{1, 1, 0}}));
}

TEST(WindowedMetrics, WeighsExamplesAndLeavesOutMissingLabels) {
  const float missing = std::nanf("");
  WindowedMetrics window(3, 2);
  window.add({Floats{.9F, .1F, .8F, .2F}, Floats{1, 0, 1, missing}, Floats{5, 1}});
  window.add({});
  window.add({Floats{.3F, .6F, .4F, .7F}, Floats{0, 1, 0, 0}, Floats{2, 0}});
  expect_same(window.compute(0), compute_metrics({Floats{.8F, .3F}, Floats{1, 0}, Floats{1, 2}}));
  EXPECT_EQ(window.compute(1).examples, 1);
  EXPECT_EQ(window.compute(1).weight, 2.0);
}

TEST(WindowedMetrics, AllExamplesHaveWeightsOrNone) {
  WindowedMetrics window(3), other(3);
  window.add({Floats{.5F}, Floats{1}});
  EXPECT_THROW(window.add({Floats{.5F}, Floats{1}, Floats{1}}), Error);
  other.add({Floats{.5F}, Floats{1}, Floats{1}});
  EXPECT_THROW(other.add({Floats{.5F}, Floats{1}}), Error);
  EXPECT_THROW(other.add({Floats{.5F}, Floats{1}, Floats{1, 2}}), Error);
}

TEST(WindowedMetrics, HoldsTheLastExamplesOfAnyBatches) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const RandomStream random{hash64(seed, 5)};
    const auto capacity = static_cast<std::size_t>(20 + random.below(0, 60));
    WindowedMetrics window(static_cast<std::int64_t>(capacity));
    std::deque<float> last_p, last_y, last_w;
    std::uint64_t n = 1;
    for (int batch = 0; batch < 40; ++batch) {
      Floats p, y, w;
      for (std::uint64_t i = random.below(n++, 100); i > 0; --i) {
        p.push_back(random.uniform(n++));
        y.push_back(random.uniform(n++) < 0.4F ? 1.0F : 0.0F);
        if (seed % 2 == 1) w.push_back(0.5F + random.uniform(n++));
      }
      window.add({p, y, w});
      last_p.insert(last_p.end(), p.begin(), p.end());
      last_y.insert(last_y.end(), y.begin(), y.end());
      last_w.insert(last_w.end(), w.begin(), w.end());
      while (last_p.size() > capacity) {
        last_p.pop_front();
        last_y.pop_front();
        if (!last_w.empty()) last_w.pop_front();
      }
      if (last_p.size() < 20) continue;  // with fewer, a class may be missing
      expect_same(window.compute(), compute_metrics({Floats(last_p.begin(), last_p.end()),
                                                     Floats(last_y.begin(), last_y.end()),
                                                     Floats(last_w.begin(), last_w.end())}));
    }
  }
}

}  // namespace
}  // namespace satrap::trainer
