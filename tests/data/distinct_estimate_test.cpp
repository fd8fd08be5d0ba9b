#include "src/data/rows/distinct_estimate.h"

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(DistinctEstimate, IsZeroForNothing) { EXPECT_EQ(DistinctEstimate().count(), 0.0); }

TEST(DistinctEstimate, IsAboutRightAtAnySize) {
  DistinctEstimate estimate;
  std::uint64_t id = 0;
  for (const std::uint64_t size :
       std::initializer_list<std::uint64_t>{1, 3, 30, 600, 15'000, 60'000, 300'000, 2'000'000}) {
    for (; id < size; ++id) estimate.add(id * 977);
    const auto expected = static_cast<double>(size);
    EXPECT_NEAR(estimate.count(), expected, 0.03 * expected + 1.5) << size;
  }
}

TEST(DistinctEstimate, CountsRepeatedIdsOnce) {
  DistinctEstimate estimate;
  for (int i = 0; i < 1000; ++i) estimate.add(42);
  EXPECT_NEAR(estimate.count(), 1.0, 0.01);
}

TEST(DistinctEstimate, MergedPartsAreTheWhole) {
  DistinctEstimate whole, left, right;
  for (std::uint64_t id = 0; id < 5000; ++id) {
    whole.add(id);
    (id % 3 == 0 ? left : right).add(id);
  }
  left.merge(right);
  EXPECT_EQ(left.count(), whole.count());
  left.clear();
  EXPECT_EQ(left.count(), 0.0);
}

}  // namespace
}  // namespace satrap::data
