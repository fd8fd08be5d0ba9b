#include "src/data/rows/comparison.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

bool holds(const std::string& condition, std::string_view text, bool has_decimal_comma = false) {
  return parse_comparisons(condition, has_decimal_comma).at(0).holds(text);
}

std::string condition_refusal(const std::string& condition) {
  return error_of([&] { parse_comparisons(condition, false); }, ErrorCode::kInvalidConfig);
}

TEST(Comparison, NumbersAreComparedAsNumbers) {
  EXPECT_TRUE(holds("n = 5", "5"));
  EXPECT_TRUE(holds("n == 5", "05"));
  EXPECT_TRUE(holds("n = 5", "+5.0"));
  EXPECT_TRUE(holds("n = 5e0", "5"));
  EXPECT_TRUE(holds("n >= -3", "-2.5"));
  EXPECT_FALSE(holds("n < 10", "10"));
  EXPECT_TRUE(holds("n < 10", "9"));
  EXPECT_TRUE(holds("n <= 10", "10"));
  EXPECT_FALSE(holds("n > 10", "10"));
  EXPECT_TRUE(holds("n <> 5", "6"));
  EXPECT_TRUE(holds("n = 0.1", "0.10"));
  EXPECT_TRUE(holds("n > 5", "inf"));
  EXPECT_TRUE(holds("n > -inf", "-1e300"));
}

TEST(Comparison, IntegersOf64BitsAreExact) {
  EXPECT_FALSE(holds("n = 9007199254740993", "9007199254740992"));
  EXPECT_TRUE(holds("n < 18446744073709551615", "18446744073709551614"));
  EXPECT_FALSE(holds("n = 18446744073709551615", "18446744073709551614"));
  EXPECT_TRUE(holds("n > -9223372036854775808", "-9223372036854775807"));
}

TEST(Comparison, ATextThatIsNoNumberIsUnequalToAndNotOrderedAmongNumbers) {
  for (const char* const text : {"x", "", "nan", "1x", "0x10"}) {
    EXPECT_TRUE(holds("n != 5", text)) << text;
    for (const char* const op : {"=", "<", "<=", ">", ">="}) {
      EXPECT_FALSE(holds(std::string("n ") + op + " 5", text)) << op << text;
    }
  }
}

TEST(Comparison, OthersAndThoseInQuotesAreComparedAsTexts) {
  EXPECT_TRUE(holds("day >= 2026-11-01", "2026-11-27"));
  EXPECT_FALSE(holds("day >= 2026-11-01", "2026-10-31"));
  EXPECT_FALSE(holds("code = '7'", "07"));
  EXPECT_TRUE(holds("code = 7", "07"));
  EXPECT_TRUE(holds("n < '10'", "1"));
  EXPECT_FALSE(holds("n < '10'", "9")) << "byte by byte";
  EXPECT_TRUE(holds("c > a", "\xC3\xA9")) << "bytes are unsigned";
  EXPECT_FALSE(holds("c = us", "US"));
}

TEST(Comparison, AMissingValueIsTheEmptyText) {
  EXPECT_TRUE(holds("c = ''", ""));
  EXPECT_FALSE(holds("c != ''", ""));
  EXPECT_TRUE(holds("c != ''", "x"));
  EXPECT_TRUE(holds("c != US", ""));
  EXPECT_TRUE(holds("c in (US, '')", ""));
  for (const char* const op : {"<", "<=", ">", ">="}) {
    EXPECT_FALSE(holds(std::string("c ") + op + " x", "")) << op;
  }
}

TEST(Comparison, AnyOfSeveral) {
  EXPECT_TRUE(holds("c in (US, 5, 'a b')", "US"));
  EXPECT_TRUE(holds("c in (US, 5, 'a b')", "5.0"));
  EXPECT_TRUE(holds("c in (US, 5, 'a b')", "a b"));
  EXPECT_FALSE(holds("c in (US, 5, 'a b')", "DE"));
  EXPECT_FALSE(holds("c not in (US, 5)", "5"));
  EXPECT_TRUE(holds("c NOT IN (US, 5)", "DE"));
}

TEST(Comparison, TrueAndFalseAreNumbers) {
  EXPECT_TRUE(holds("b = true", "1"));
  EXPECT_TRUE(holds("b = 1", "True"));
  EXPECT_TRUE(holds("b = FALSE", "0"));
  EXPECT_FALSE(holds("b = 'true'", "1"));
}

TEST(Comparison, DecimalCommas) {
  EXPECT_TRUE(holds("n >= 0.5", "0,5", true));
  EXPECT_TRUE(holds("n = 0.5", "0.5", true));
  EXPECT_FALSE(holds("n >= 0.5", "0,5", false));
  EXPECT_FALSE(holds("n = 1", "1,0,0", true));
}

TEST(Comparison, ThoseOfAConditionInOrder) {
  const auto all = parse_comparisons("\"a b\"='it''s'AND c not in(1,2) and d>=-3", false);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].column(), "a b");
  EXPECT_TRUE(all[0].holds("it's"));
  EXPECT_EQ(all[1].column(), "c");
  EXPECT_FALSE(all[1].holds("2"));
  EXPECT_EQ(all[2].column(), "d");
  EXPECT_TRUE(all[2].holds("-3"));
  EXPECT_EQ(parse_comparisons("'and' = and", false).at(0).column(), "and");
}

TEST(Comparison, WhatCannotBeReadIsNamed) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"", "expected the name of a column, got the end"},
      {"day", "expected =, !=, <, <=, >, >=, in or not in after 'day', got the end"},
      {"day >=", "expected a value, got the end"},
      {"day => 5", "got '=>'"},
      {"day ~ 5", "got '~'"},
      {"day = 5 or x = 3", "expected `and` or the end, got 'or'"},
      {"day = 5 and", "expected the name of a column, got the end"},
      {"(day = 5)", "expected the name of a column, got '('"},
      {"day in 5", "expected ( after `in`, got '5'"},
      {"day in ()", "expected a value, got ')'"},
      {"day in (5", "expected , or ), got the end"},
      {"day not 5", "expected `in` after `not`, got '5'"},
      {"day = 'x", "the quote of 'x is not closed"},
      {"day = 5 6", "expected `and` or the end, got '6'"},
  };
  for (const auto& [condition, message] : all) {
    EXPECT_NE(condition_refusal(condition).find(message), std::string::npos)
        << condition << ": " << condition_refusal(condition);
  }
}

// Bounds leave out only what no value within them meets.
TEST(Comparison, BoundsAreNeverTooNarrow) {
  RandomStream random{7};
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(draws++, bound); };
  const std::vector<std::string> operators = {"=", "!=", "<", "<=", ">", ">="};
  int num_left_out = 0;
  for (int i = 0; i < 20'000; ++i) {
    const bool are_numbers = below(2) == 0;
    const auto value = [&] {
      return are_numbers ? std::to_string(static_cast<int>(below(30)) - 10)
                         : std::string(1 + below(2), static_cast<char>('a' + below(5)));
    };
    std::vector<std::string> values(1 + below(3));
    std::ranges::generate(values, value);
    ColumnBounds bounds{.least = values[0], .greatest = values[0], .are_numbers = are_numbers};
    for (const std::string& x : values) {
      const auto is_less = [&](const std::string& a, const std::string& b) {
        return are_numbers ? std::stoi(a) < std::stoi(b) : a < b;
      };
      if (is_less(x, bounds.least)) bounds.least = x;
      if (is_less(bounds.greatest, x)) bounds.greatest = x;
    }
    if (below(3) == 0) values.push_back("");
    const std::string operand = below(4) == 0 ? "'" + value() + "'" : value();
    const std::string condition = below(5) == 0 ? "c in (" + operand + ", " + value() + ")"
                                                : "c " + operators[below(operators.size())] + " " +
                                                      (below(10) == 0 ? "''" : operand);
    const Comparison comparison = parse_comparisons(condition, false).at(0);
    const bool is_met =
        std::ranges::any_of(values, [&](const auto& text) { return comparison.holds(text); });
    ASSERT_TRUE(comparison.may_hold(bounds) || !is_met)
        << condition << " of " << bounds.least << " to " << bounds.greatest;
    num_left_out += comparison.may_hold(bounds) ? 0 : 1;
  }
  EXPECT_GT(num_left_out, 2'000);
}

TEST(Comparison, BoundsLeaveOutWhatTheyCan) {
  const auto may_hold = [](const std::string& condition, const ColumnBounds& bounds) {
    return parse_comparisons(condition, false).at(0).may_hold(bounds);
  };
  const ColumnBounds numbers{.least = "9", .greatest = "10", .are_numbers = true};
  EXPECT_FALSE(may_hold("n > 10", numbers));
  EXPECT_TRUE(may_hold("n >= 10", numbers));
  EXPECT_FALSE(may_hold("n < 9", numbers));
  EXPECT_FALSE(may_hold("n = 5", numbers));
  EXPECT_FALSE(may_hold("n in (5, 11)", numbers));
  EXPECT_TRUE(may_hold("n in (5, 10)", numbers));
  EXPECT_TRUE(may_hold("n != 9", numbers));
  EXPECT_TRUE(may_hold("n = '5'", numbers)) << "texts of numbers have another order";
  const ColumnBounds texts{.least = "2026-11-01", .greatest = "2026-11-30"};
  EXPECT_FALSE(may_hold("day >= 2026-12-01", texts));
  EXPECT_TRUE(may_hold("day >= 2026-11-30", texts));
  EXPECT_TRUE(may_hold("day = ''", texts)) << "it may be missing";
  EXPECT_TRUE(may_hold("day = 5", texts)) << "texts that are numbers have another order";
}

}  // namespace
}  // namespace satrap::data
