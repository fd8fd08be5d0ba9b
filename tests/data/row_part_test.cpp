#include "src/data/rows/row_part.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(RowPart, EveryTextIsInOneOfTheTwoParts) {
  const RowPart training(0.3, false);
  const RowPart evaluation(0.3, true);
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string text = std::to_string(i);
    EXPECT_NE(training.has(text), evaluation.has(text)) << text;
    kept += evaluation.has(text) ? 1 : 0;
  }
  EXPECT_NEAR(kept, 3000, 5 * std::sqrt(10'000 * 0.3 * 0.7));
}

TEST(RowPart, ATextIsWhereXxh3SaysOtherProgramsCanDivideRowsTheSameWay) {
  // XXH3_64bits("") is 0x2D06800538D394C2, a share of 0.1759 of 2^64.
  EXPECT_TRUE(RowPart(0.176, true).has(""));
  EXPECT_FALSE(RowPart(0.175, true).has(""));
}

TEST(RowPart, ALargerPartHasTheRowsOfASmallerOne) {
  for (int i = 0; i < 1000; ++i) {
    const std::string text = std::to_string(i);
    EXPECT_TRUE(RowPart(0.2, true).has(text) || !RowPart(0.1, true).has(text)) << text;
  }
}

}  // namespace
}  // namespace satrap::data
