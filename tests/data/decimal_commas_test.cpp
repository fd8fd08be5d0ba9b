#include "src/data/look/decimal_commas.h"

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

using Strings = std::vector<std::string>;
using Columns = std::vector<Strings>;

TEST(DecimalCommas, BecomePointsInColumnsOfNumbers) {
  Columns columns{{"39,02", "-1,5", "7", "", "NA", "+0,125"}, {"a,b", "c"}, {"1", "0"}};
  EXPECT_TRUE(replace_decimal_commas(columns));
  EXPECT_EQ(columns,
            (Columns{{"39.02", "-1.5", "7", "", "NA", "+0.125"}, {"a,b", "c"}, {"1", "0"}}));
}

TEST(DecimalCommas, AreNoneBesideNumbersWithPoints) {
  for (const Columns& columns : {Columns{{"39,02"}, {"1.5"}}, Columns{{"39,02", "1.5"}}}) {
    Columns same = columns;
    EXPECT_FALSE(replace_decimal_commas(same));
    EXPECT_EQ(same, columns);
  }
}

TEST(DecimalCommas, AreNoneThatMayDivideThousands) {
  Columns columns{{"1,250", "12,000", "999"}};
  EXPECT_FALSE(replace_decimal_commas(columns));
  Columns certain{{"1,250", "0,125"}};
  EXPECT_TRUE(replace_decimal_commas(certain));
  EXPECT_EQ(certain, (Columns{{"1.250", "0.125"}}));
}

TEST(DecimalCommas, AreNoneInListsTextsAndNothing) {
  for (const Columns& columns :
       {Columns{}, Columns{{}}, Columns{{"", ""}}, Columns{{"1,2,3", "4,5"}},
        Columns{{"1,5", "a1"}}, Columns{{"$1,50"}}, Columns{{",5", "5,"}},
        Columns{{"1,5", "red", "blue"}}}) {
    Columns same = columns;
    EXPECT_FALSE(replace_decimal_commas(same));
    EXPECT_EQ(same, columns);
  }
}

}  // namespace
}  // namespace satrap::data
