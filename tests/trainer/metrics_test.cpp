#include "satrap/trainer/metrics.h"

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
}

TEST(Metrics, MatchHandComputedValues) {
  const Metrics m = compute_metrics(Floats{.75F, .5F, .25F, .25F}, Floats{1, 0, 0, 0});
  const double logloss = -(std::log(.75) + std::log(.5) + 2 * std::log(.75)) / 4;
  EXPECT_EQ(m.examples, 4);
  EXPECT_DOUBLE_EQ(m.auc, 1.0);
  EXPECT_NEAR(m.logloss, logloss, 1e-12);
  EXPECT_NEAR(m.ne, logloss / -(.25 * std::log(.25) + .75 * std::log(.75)), 1e-12);
  EXPECT_DOUBLE_EQ(m.calibration, 1.75);
}

TEST(Metrics, PredictingTheMeanLabelHasNormalisedEntropyAndCalibrationOne) {
  const Metrics m = compute_metrics(Floats{.25F, .25F, .25F, .25F}, Floats{0, 1, 0, 0});
  EXPECT_DOUBLE_EQ(m.ne, 1.0);
  EXPECT_DOUBLE_EQ(m.calibration, 1.0);
  EXPECT_DOUBLE_EQ(m.auc, 0.5);
}

TEST(Metrics, CertainAndWrongCostsTheClippedLoss) {
  const double worst = 23 * std::log(2.0);
  EXPECT_NEAR(compute_metrics(Floats{0.0F}, Floats{1}).logloss, worst, 1e-9);
  EXPECT_NEAR(compute_metrics(Floats{1.0F}, Floats{0}).logloss, worst, 1e-9);
  EXPECT_NEAR(compute_metrics(Floats{1.0F}, Floats{1}).logloss, 0x1.0p-23, 1e-12);
}

TEST(Metrics, OneClassLeavesRankingUndefined) {
  const Metrics negatives = compute_metrics(Floats{.5F, .25F}, Floats{0, 0});
  EXPECT_TRUE(std::isnan(negatives.auc));
  EXPECT_TRUE(std::isnan(negatives.ne));
  EXPECT_TRUE(std::isnan(negatives.calibration));
  EXPECT_NEAR(negatives.logloss, -(std::log(.5) + std::log(.75)) / 2, 1e-12);

  const Metrics positives = compute_metrics(Floats{.5F, .25F}, Floats{1, 1});
  EXPECT_TRUE(std::isnan(positives.auc));
  EXPECT_TRUE(std::isnan(positives.ne));
  EXPECT_DOUBLE_EQ(positives.calibration, .375);
}

TEST(Metrics, NoExamplesLeaveEverythingUndefined) {
  for (const Metrics& m : {compute_metrics({}, {}), WindowedMetrics(3).compute()}) {
    EXPECT_EQ(m.examples, 0);
    EXPECT_TRUE(std::isnan(m.auc) && std::isnan(m.logloss) && std::isnan(m.ne) &&
                std::isnan(m.calibration));
  }
}

TEST(Metrics, ANanPredictionMakesEverythingNan) {
  const Metrics m = compute_metrics(Floats{.5F, std::nanf("")}, Floats{1, 0});
  EXPECT_TRUE(std::isnan(m.auc) && std::isnan(m.logloss) && std::isnan(m.ne) &&
              std::isnan(m.calibration));
}

TEST(Metrics, RefusesWrongSizesAndFractionalLabels) {
  EXPECT_THROW(compute_metrics(Floats{.5F}, Floats{}), Error);
  EXPECT_THROW(compute_metrics(Floats{.5F}, Floats{.5F}), Error);
  EXPECT_THROW(WindowedMetrics(0), Error);
}

TEST(WindowedMetrics, ForgetsTheOldestExamples) {
  WindowedMetrics window(3);
  window.add(Floats{.1F, .8F}, Floats{1, 1});
  EXPECT_NEAR(window.compute().calibration, .45, 1e-6);
  window.add(Floats{.3F, .4F}, Floats{0, 0});
  expect_same(window.compute(), compute_metrics(Floats{.8F, .3F, .4F}, Floats{1, 0, 0}));
}

TEST(WindowedMetrics, ABatchLargerThanTheWindowLeavesItsEnd) {
  WindowedMetrics window(2);
  window.add(Floats{.5F}, Floats{1});
  window.add(Floats{.1F, .2F, .3F, .4F}, Floats{1, 1, 0, 1});
  expect_same(window.compute(), compute_metrics(Floats{.3F, .4F}, Floats{0, 1}));
}

TEST(WindowedMetrics, KeepsTheLabelsOfARowApart) {
  WindowedMetrics window(3, 2);
  window.add(Floats{.9F, .1F, .8F, .2F}, Floats{1, 0, 1, 1});
  window.add(Floats{.3F, .6F, .4F, .7F}, Floats{0, 1, 0, 0});
  expect_same(window.compute(0), compute_metrics(Floats{.8F, .3F, .4F}, Floats{1, 0, 0}));
  expect_same(window.compute(1), compute_metrics(Floats{.2F, .6F, .7F}, Floats{1, 1, 0}));
}

TEST(WindowedMetrics, HoldsTheLastExamplesOfAnyBatches) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const RandomStream random{hash64(seed, 5)};
    const auto capacity = static_cast<std::size_t>(20 + random.below(0, 60));
    WindowedMetrics window(static_cast<std::int64_t>(capacity));
    std::deque<float> last_p, last_y;
    std::uint64_t n = 1;
    for (int batch = 0; batch < 40; ++batch) {
      Floats p, y;
      for (std::uint64_t i = random.below(n++, 100); i > 0; --i) {
        p.push_back(random.uniform(n++));
        y.push_back(random.uniform(n++) < 0.4F ? 1.0F : 0.0F);
      }
      window.add(p, y);
      last_p.insert(last_p.end(), p.begin(), p.end());
      last_y.insert(last_y.end(), y.begin(), y.end());
      while (last_p.size() > capacity) {
        last_p.pop_front();
        last_y.pop_front();
      }
      if (last_p.size() < 20) continue;  // with fewer, a class may be missing
      expect_same(window.compute(), compute_metrics(Floats(last_p.begin(), last_p.end()),
                                                    Floats(last_y.begin(), last_y.end())));
    }
  }
}

}  // namespace
}  // namespace satrap::trainer
