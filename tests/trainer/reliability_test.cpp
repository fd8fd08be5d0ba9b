#include "satrap/trainer/reliability.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/hash.h"

namespace satrap::trainer {
namespace {

using Bins = std::vector<ReliabilityBin>;
using Floats = std::vector<float>;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Bins bins_of(const Floats& p, const Floats& y, const Floats& w = {}) {
  return reliability({p, y, w});
}

TEST(Reliability, EachOfAFewExamplesIsABin) {
  EXPECT_THAT(bins_of(Floats{.75F, .25F, .5F}, Floats{1, 0, 0}),
              ElementsAre(ReliabilityBin{1, .25, 0, 1}, ReliabilityBin{1, .5, 0, 1},
                          ReliabilityBin{1, .75, 1, 1}));
}

TEST(Reliability, ManyExamplesAreInBinsOfEqualSize) {
  Floats p, y;
  for (int i = 0; i < 200; ++i) {
    p.push_back(static_cast<float>(i) / 256.0F);
    y.push_back(i >= 190 ? 1.0F : 0.0F);
  }
  const Bins bins = bins_of(p, y);
  ASSERT_THAT(bins, SizeIs(20));
  EXPECT_EQ(bins.front(), (ReliabilityBin{10, 45.0 / 256, 0, 10}));
  EXPECT_EQ(bins.back(), (ReliabilityBin{10, 1945.0 / 256, 10, 10}));
}

TEST(Reliability, EqualPredictionsStayTogether) {
  EXPECT_THAT(bins_of(Floats(300, .25F), Floats(300, 1)),
              ElementsAre(ReliabilityBin{300, 75, 300, 300}));
}

TEST(Reliability, WithWeightsBinsHaveEqualWeight) {
  // .25 weighs half of all: what follows it begins in bin 10.
  EXPECT_THAT(bins_of(Floats{.75F, .25F, .5F}, Floats{1, 1, 0}, Floats{.5F, 2, 1.5F}),
              ElementsAre(ReliabilityBin{1, .5, 2, 2}, ReliabilityBin{1, .75, 0, 1.5},
                          ReliabilityBin{1, .375, .5, .5}));
}

TEST(Reliability, OfNothingOrNanThereIsNone) {
  EXPECT_THAT(bins_of({}, {}), IsEmpty());
  EXPECT_THAT(bins_of(Floats{.5F, std::nanf("")}, Floats{1, 0}), IsEmpty());
}

/// By counting the smaller predictions of each example; sums are exact, since predictions are
/// multiples of 1/256 and weights of 1/4.
Bins slow_reliability(const Floats& p, const Floats& y, const Floats& w) {
  std::map<std::int64_t, ReliabilityBin> bins;
  for (std::size_t i = 0; i < p.size(); ++i) {
    double smaller = 0, all = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
      smaller += p[j] < p[i] ? static_cast<double>(w[j]) : 0.0;
      all += static_cast<double>(w[j]);
    }
    ReliabilityBin& bin = bins[static_cast<std::int64_t>(20 * smaller / all)];
    const auto weight = static_cast<double>(w[i]);
    ++bin.examples;
    bin.predicted += weight * static_cast<double>(p[i]);
    if (y[i] == 1.0F) bin.positives += weight;
    bin.weight += weight;
  }
  Bins all;
  for (const auto& [number, bin] : bins) all.push_back(bin);
  return all;
}

TEST(Reliability, IsThatOfCountingWhateverTheNumberOfExamplesAndTies) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RandomStream random{hash64(seed, 9)};
    const std::uint64_t n = 1 + random.below(0, 400), values = 1 + random.below(1, 256);
    Floats p, y, w;
    for (std::uint64_t i = 0; i < n; ++i) {
      p.push_back(static_cast<float>(random.below(3 * i + 2, values)) / 256.0F);
      y.push_back(random.uniform(3 * i + 3) < 0.3F ? 1.0F : 0.0F);
      w.push_back(static_cast<float>(1 + random.below(3 * i + 4, 12)) / 4.0F);
    }
    EXPECT_EQ(bins_of(p, y), slow_reliability(p, y, Floats(n, 1.0F))) << seed;
    EXPECT_EQ(bins_of(p, y, w), slow_reliability(p, y, w)) << seed;
  }
}

TEST(Reliability, TheOrderOfTheExamplesChangesNoBit) {
  const RandomStream random{hash64(1, 9)};
  std::vector<std::pair<float, float>> rows;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    rows.emplace_back(random.uniform(2 * i), random.uniform(2 * i + 1) < 0.3F ? 1.0F : 0.0F);
  }
  const auto bins_of_rows = [&] {
    Floats p, y;
    for (const auto& [probability, label] : rows) {
      p.push_back(probability);
      y.push_back(label);
    }
    return bins_of(p, y);
  };
  const Bins bins = bins_of_rows();
  std::ranges::reverse(rows);
  EXPECT_EQ(bins_of_rows(), bins);
  std::ranges::sort(rows);
  EXPECT_EQ(bins_of_rows(), bins);
}

}  // namespace
}  // namespace satrap::trainer
