#include "satrap/table/staleness_bound.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::table {
namespace {

using testing::ElementsAre;

TEST(StalenessBound, IsTheSameForAllStepsWithoutAFactor) {
  const StalenessBound bound = 4;
  EXPECT_EQ(bound.at(1), 4);
  EXPECT_EQ(bound.at(1'000'000), 4);
  EXPECT_EQ(bound.oldest_version(10), 5);
  EXPECT_EQ(bound.last_reader(5), 10);
}

TEST(StalenessBound, GrowsAsTheRootOfTheStepUpToItsMaximum) {
  const StalenessBound bound(4, 0.5);
  std::vector<std::int64_t> bounds;
  for (const std::int64_t step : {1, 3, 4, 15, 16, 35, 36, 63, 64, 100, 1'000'000'000}) {
    bounds.push_back(bound.at(step));
  }
  EXPECT_THAT(bounds, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4));
}

TEST(StalenessBound, OfZeroIsZero) {
  EXPECT_EQ(StalenessBound(0, 0.5).at(1'000'000), 0);
  EXPECT_EQ(StalenessBound().at(7), 0);
  EXPECT_EQ(StalenessBound(0, 1.0).last_reader(6), 7);
}

TEST(StalenessBound, VersionsNeverDecreaseAndTheLastReaderIsTheLast) {
  for (const std::int64_t max : {0, 1, 2, 4, 16, 100}) {
    for (const double factor : {0.0, 0.1, 0.5, 0.77, 1.0}) {
      const StalenessBound bound(max, factor);
      for (std::int64_t step = 1; step <= 3000; ++step) {
        ASSERT_GE(bound.at(step), 0);
        ASSERT_LE(bound.at(step), max);
        ASSERT_LE(bound.oldest_version(step), bound.oldest_version(step + 1));
      }
      for (std::int64_t version = 0; version <= 2000; ++version) {
        std::int64_t last = version + 1;  // by trying every step
        for (std::int64_t step = last; step <= version + 1 + max; ++step) {
          if (bound.oldest_version(step) <= version) last = step;
        }
        ASSERT_EQ(bound.last_reader(version), last) << max << ' ' << factor << ' ' << version;
      }
    }
  }
}

TEST(StalenessBound, RefusesWhatIsNoBound) {
  EXPECT_THROW(StalenessBound(-1), Error);
  EXPECT_THROW(StalenessBound(4, -0.5), Error);
  EXPECT_THROW(StalenessBound(4, 1.5), Error);
}

}  // namespace
}  // namespace satrap::table
