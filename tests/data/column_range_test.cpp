#include "src/data/terms/column_range.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

TEST(ColumnRange, StandsForAllNamesInIt) {
  EXPECT_EQ(expand_range("C9..C11"), (std::vector<std::string>{"C9", "C10", "C11"}));
  EXPECT_EQ(expand_range("x08..x10"), (std::vector<std::string>{"x08", "x09", "x10"}));
  EXPECT_EQ(expand_range("3..4"), (std::vector<std::string>{"3", "4"}));
}

TEST(ColumnRange, AnythingElseIsAName) {
  for (const char* name : {"C1", "C1..D2", "C2..C1", "C..D", "C1..", "..", ""}) {
    EXPECT_EQ(expand_range(name), std::vector<std::string>{name});
  }
}

TEST(ColumnRange, MayBeOneColumnAndGrowInWidth) {
  EXPECT_EQ(expand_range("C7..C7"), std::vector<std::string>{"C7"});
  EXPECT_EQ(expand_range("x98..x101"), (std::vector<std::string>{"x98", "x99", "x100", "x101"}));
  EXPECT_EQ(expand_range("x0..x1"), (std::vector<std::string>{"x0", "x1"}));
}

TEST(ColumnRange, OfTooManyColumnsIsAName) {
  EXPECT_EQ(expand_range("C1..C100000").size(), 100'000U);
  EXPECT_EQ(expand_range("C0..C100000").size(), 1U);
  EXPECT_EQ(expand_range("C0..C99999999999999999999").size(), 1U);
}

}  // namespace
}  // namespace satrap::data
