#include "satrap/data/column_profile.h"

#include <gtest/gtest.h>

namespace satrap::data {
namespace {

using Strings = std::vector<std::string>;
using Words = std::map<std::string, std::int64_t>;

ColumnProfile profile(const Strings& texts) { return profile_column(texts, ','); }

TEST(ColumnProfile, TheKindIsTheNarrowestOfAllValues) {
  EXPECT_EQ(profile({"1", "-2", "18446744073709551615"}).kind, ColumnProfile::Kind::kInteger);
  EXPECT_EQ(profile({"1", "2.5", "1e3"}).kind, ColumnProfile::Kind::kNumber);
  EXPECT_EQ(profile({"68fd1e64", "0009fb0a"}).kind, ColumnProfile::Kind::kHex);
  EXPECT_EQ(profile({"68fd1e64", "9fb0a"}).kind, ColumnProfile::Kind::kText);
  EXPECT_EQ(profile({"2017-11-07 9:30", "2017-11-07 16:00:01"}).kind, ColumnProfile::Kind::kTime);
  EXPECT_EQ(profile({"2017/11/07", "1999/01/02"}).kind, ColumnProfile::Kind::kTime);
  EXPECT_EQ(profile({"red", "1"}).kind, ColumnProfile::Kind::kText);
  EXPECT_EQ(profile({"", ""}).kind, ColumnProfile::Kind::kText);
}

TEST(ColumnProfile, DatesAreTimesHoweverTheyAreWritten) {
  for (const Strings& texts :
       {Strings{"03/21/2026", "04/01/2026"}, Strings{"21.03.2026", "01.04.2026"},
        Strings{"20260321", "20260401"}, Strings{"21-Mar-2026", "1-Apr-2026"},
        Strings{"3/21/2026 9:30 AM", "3/21/2026 1:05 PM"}}) {
    EXPECT_EQ(profile(texts).kind, ColumnProfile::Kind::kTime) << texts[0];
    EXPECT_TRUE(profile(texts).is_ascending) << texts[0];
    EXPECT_FALSE(profile({texts[1], texts[0]}).is_ascending) << texts[0];
  }
  // The day is in the second place, since nothing else fits all.
  EXPECT_TRUE(profile({"02/03/2026", "02/04/2026", "02/13/2026", "03/01/2026"}).is_ascending);
  EXPECT_EQ(profile({"03/21/2026", "21/03/2026"}).kind, ColumnProfile::Kind::kText);
  EXPECT_EQ(profile({"20260321", "20261321"}).kind, ColumnProfile::Kind::kInteger);
}

TEST(ColumnProfile, WhetherTheReaderOfRowsReadsTheTimesIsSaid) {
  for (const char* date : {"2026-03-21", "2026/03/21 9:30", "21.03.2026", "20260321",
                           "20260321140500", "2026-03-21T14:05:22.125Z", "1700000000", "17.5"}) {
    EXPECT_TRUE(profile({date, date, ""}).are_read_as_times) << date;
  }
  for (const char* date : {"03/21/2026", "21-Mar-2026", "2026.03.21", "3/21/26", "2026032114",
                           "3/21/2026 1:05 PM", "1e30", "red", ""}) {
    EXPECT_FALSE(profile({date, date}).are_read_as_times) << date;
  }
  EXPECT_FALSE(profile({"2026-03-21", "03/21/2026"}).are_read_as_times);
}

TEST(ColumnProfile, TextsForMissingValuesAreNamed) {
  const ColumnProfile numbers = profile({"1", "", "NaN", "?", "NA", "2"});
  EXPECT_EQ(numbers.kind, ColumnProfile::Kind::kInteger);
  EXPECT_EQ(numbers.num_missing, 4);
  EXPECT_EQ(numbers.missing, (Words{{"?", 1}, {"NA", 1}, {"NaN", 1}}));
  const ColumnProfile texts = profile({"NA", "DE", "\\N", "NULL"});  // Namibia
  EXPECT_EQ(texts.num_values, 2);
  EXPECT_EQ(texts.missing, (Words{{"NULL", 1}, {"\\N", 1}}));
}

TEST(ColumnProfile, AFewWordsAmongNumbersAreMissingValues) {
  Strings texts;
  for (int i = 0; i < 100; ++i) texts.push_back(std::to_string(i) + ".5");
  texts.insert(texts.end(), {"unknown", "#DIV/0!", "unknown"});
  const ColumnProfile column = profile(texts);
  EXPECT_EQ(column.kind, ColumnProfile::Kind::kNumber);
  EXPECT_EQ(column.num_missing, 3);
  EXPECT_EQ(column.missing, (Words{{"#DIV/0!", 1}, {"unknown", 2}}));
  texts.insert(texts.end(), {"a", "b", "c", "d"});
  EXPECT_EQ(profile(texts).kind, ColumnProfile::Kind::kText);
  EXPECT_EQ(profile({"1", "2", "red"}).kind, ColumnProfile::Kind::kText);
}

TEST(ColumnProfile, ValuesAreCounted) {
  const ColumnProfile column = profile({"b", "a", "b", "", "c"});
  EXPECT_EQ(column.num_distinct, 3);
  EXPECT_EQ(column.frequent.front(), (std::pair<std::string, std::int64_t>("b", 2)));
  EXPECT_EQ(column.frequent[1].first, "a");
  EXPECT_DOUBLE_EQ(column.frequent_share(0), 0.5);
  EXPECT_DOUBLE_EQ(column.frequent_share(9), 0.0);
}

TEST(ColumnProfile, NumbersHaveAnUpperHalf) {
  EXPECT_EQ(profile({"1", "2", "3", "4"}).upper_half, 3.0);
  EXPECT_EQ(profile({"1", "2", "2", "4"}).upper_half, 4.0);  // three of four are at least 2
  EXPECT_EQ(profile({"5", "5", "5"}).upper_half, 5.0);
  EXPECT_EQ(profile({"5", "5", "1"}).upper_half, 5.0);  // nothing is above
  const ColumnProfile column = profile({"3", "1", "2"});
  EXPECT_EQ(column.min, 1.0);
  EXPECT_EQ(column.max, 3.0);
  EXPECT_EQ(column.mean, 2.0);
  EXPECT_EQ(column.numbers, (std::vector<double>{1, 2, 3}));
}

TEST(ColumnProfile, AnAscendingColumnNeverFalls) {
  EXPECT_TRUE(profile({"1", "1", "", "2"}).is_ascending);
  EXPECT_FALSE(profile({"1", "2", "1"}).is_ascending);
  EXPECT_FALSE(profile({"1", "1"}).is_ascending);
  EXPECT_TRUE(profile({"1700000000001", "1700000000002"}).is_ascending);
  EXPECT_FALSE(profile({"1700000000002", "1700000000001"}).is_ascending);
  EXPECT_TRUE(profile({"2017-11-07", "2017-11-08"}).is_ascending);
}

TEST(ColumnProfile, SeveralValuesInAField) {
  const ColumnProfile bag = profile({"a|b", "b|c|a", "c", "a|c"});
  EXPECT_EQ(bag.separator, "|");
  EXPECT_EQ(bag.most_elements, 3);
  EXPECT_EQ(profile({"7;5", "7", "5;7"}).separator, ";");
  EXPECT_EQ(profile({"12 7 3", "3 7", "12"}).separator, " ");
}

TEST(ColumnProfile, HistoriesOfAnyNotation) {
  EXPECT_EQ(profile({"i0 i5 i9", "i5 i2 i0", "i9 i2 i5"}).separator, " ");
  EXPECT_EQ(profile({"N12 N7", "N7 N12", "N3 N12 N7"}).separator, " ");
  EXPECT_EQ(profile({"i0^i5", "i5^i0", "i5"}).separator, "^");
  EXPECT_EQ(profile_column({"red,blue", "blue,red", "red"}, ';').separator, ",");
  EXPECT_EQ(profile_column({"1,2,3", "4,5", "2,4,1"}, ',').separator, "");
  EXPECT_FALSE(profile({"i0 i5", "i5"}).is_in_brackets);
  for (const auto& texts : std::vector<std::vector<std::string>>{
           {"[1, 2, 3]", "[3]", "[2, 1]"}, {"['a', 'b']", "['b']"}, {"[\"a\",\"b\"]", "[\"b\"]"}}) {
    const ColumnProfile column = profile_column(texts, ',');
    EXPECT_TRUE(column.is_in_brackets) << texts[0];
    EXPECT_EQ(column.separator, ",") << texts[0];
  }
  EXPECT_EQ(profile({"[1 2  3]", "[4 5]"}).separator, " ");  // as NumPy writes them
  const ColumnProfile words = profile({"['red', 'blue']", "[]"});
  EXPECT_EQ(elements_of("['red', 'blue']", words), (std::vector<std::string>{"red", "blue"}));
  EXPECT_EQ(elements_of("[]", words), std::vector<std::string>());
}

TEST(ColumnProfile, WholeNumbersWithAPointAreIntegers) {
  const ColumnProfile ids = profile({"17.0", "3.0", "", "933820.0"});
  EXPECT_EQ(ids.kind, ColumnProfile::Kind::kInteger);
  EXPECT_TRUE(ids.have_points);
  EXPECT_EQ(profile({"17.0", "3.5"}).kind, ColumnProfile::Kind::kNumber);
  EXPECT_FALSE(profile({"17", "3"}).have_points);
}

TEST(ColumnProfile, MoreDigitsThanAnIntegerHasAreTexts) {
  const ColumnProfile ids = profile({"18446744073709551616", "17", "99999999999999999999999"});
  EXPECT_EQ(ids.kind, ColumnProfile::Kind::kText);
  EXPECT_TRUE(ids.are_long_digits);
  EXPECT_FALSE(profile({"a", "b"}).are_long_digits);
}

TEST(ColumnProfile, WordsAreOneValue) {
  EXPECT_EQ(profile({"Private room", "Entire home", "Private home"}).separator, "");
  EXPECT_EQ(profile({"Berlin, DE", "Paris, FR"}).separator, "");
  EXPECT_EQ(profile({"a;1", "b;2", "c;3"}).separator, "");  // no part comes back
  EXPECT_EQ(profile_column({"a;b", "b;a", "a"}, ';').separator, "");
}

TEST(ColumnProfile, NumbersAsPeopleWriteThemAreNoLists) {
  for (const std::vector<std::string>& texts :
       std::vector<std::vector<std::string>>{{"39,02", "40,5", "-3,75", "1.234,5", "12"},
                                             {"$1,000.50", "$7", "$12.5"},
                                             {"12%", "7.5 %", "0%"}}) {
    const ColumnProfile column = profile_column(texts, ';');
    EXPECT_TRUE(column.are_marked_numbers) << texts[0];
    EXPECT_EQ(column.separator, "") << texts[0];
  }
  for (const std::vector<std::string>& texts :
       std::vector<std::vector<std::string>>{{"1,2,3", "4,5", "6,7,8"},
                                             {"31.12.2013", "01.01.2014"},
                                             {"1 2", "3 4"},
                                             {"a", "b"},
                                             {"10.0.0.1", "10.0.0.2"},
                                             {"1.5", "2.5"}}) {
    EXPECT_FALSE(profile_column(texts, ';').are_marked_numbers) << texts[0];
  }
}

}  // namespace
}  // namespace satrap::data
