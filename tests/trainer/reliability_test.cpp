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

TEST(Reliability, EachOfAFewExamplesIsABin) {
  EXPECT_THAT(
      reliability(Floats{.75F, .25F, .5F}, Floats{1, 0, 0}),
      ElementsAre(ReliabilityBin{1, .25, 0}, ReliabilityBin{1, .5, 0}, ReliabilityBin{1, .75, 1}));
}

TEST(Reliability, ManyExamplesAreInBinsOfEqualSize) {
  Floats p, y;
  for (int i = 0; i < 200; ++i) {
    p.push_back(static_cast<float>(i) / 256.0F);
    y.push_back(i >= 190 ? 1.0F : 0.0F);
  }
  const Bins bins = reliability(p, y);
  ASSERT_THAT(bins, SizeIs(20));
  EXPECT_EQ(bins.front(), (ReliabilityBin{10, 45.0 / 256, 0}));
  EXPECT_EQ(bins.back(), (ReliabilityBin{10, 1945.0 / 256, 10}));
}

TEST(Reliability, EqualPredictionsStayTogether) {
  EXPECT_THAT(reliability(Floats(300, .25F), Floats(300, 1)),
              ElementsAre(ReliabilityBin{300, 75, 300}));
}

TEST(Reliability, OfNothingOrNanThereIsNone) {
  EXPECT_THAT(reliability({}, {}), IsEmpty());
  EXPECT_THAT(reliability(Floats{.5F, std::nanf("")}, Floats{1, 0}), IsEmpty());
}

/// By counting the smaller predictions of each example; sums are exact, since predictions are
/// multiples of 1/256.
Bins slow_reliability(const Floats& p, const Floats& y) {
  std::map<std::size_t, ReliabilityBin> bins;
  for (std::size_t i = 0; i < p.size(); ++i) {
    std::size_t smaller = 0;
    for (const float other : p) smaller += other < p[i] ? 1 : 0;
    ReliabilityBin& bin = bins[20 * smaller / p.size()];
    ++bin.examples;
    bin.predicted += static_cast<double>(p[i]);
    if (y[i] == 1.0F) ++bin.positives;
  }
  Bins all;
  for (const auto& [number, bin] : bins) all.push_back(bin);
  return all;
}

TEST(Reliability, IsThatOfCountingWhateverTheNumberOfExamplesAndTies) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RandomStream random{hash64(seed, 9)};
    const std::uint64_t n = 1 + random.below(0, 400), values = 1 + random.below(1, 256);
    Floats p, y;
    for (std::uint64_t i = 0; i < n; ++i) {
      p.push_back(static_cast<float>(random.below(2 * i + 2, values)) / 256.0F);
      y.push_back(random.uniform(2 * i + 3) < 0.3F ? 1.0F : 0.0F);
    }
    EXPECT_EQ(reliability(p, y), slow_reliability(p, y)) << seed;
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
    return reliability(p, y);
  };
  const Bins bins = bins_of_rows();
  std::ranges::reverse(rows);
  EXPECT_EQ(bins_of_rows(), bins);
  std::ranges::sort(rows);
  EXPECT_EQ(bins_of_rows(), bins);
}

}  // namespace
}  // namespace satrap::trainer
