#include "src/core/config_rule.h"

#include <charconv>
#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "satrap/core/error.h"

namespace satrap::config_detail {
namespace {

using Integers = std::vector<std::int64_t>;

TEST(ConfigRule, WithoutARuleEverythingIsAllowed) {
  EXPECT_EQ(broken_rule(true, {}), "");
  EXPECT_EQ(broken_rule(std::int64_t{-5}, {}), "");
  EXPECT_EQ(broken_rule(-1e300, {}), "");
  EXPECT_EQ(broken_rule(std::string("any"), {}), "");
  EXPECT_EQ(describe_rule({}), "");
}

TEST(ConfigRule, BoundsAreAllowedUnlessExclusive) {
  const FieldRule closed{.min = 0, .max = 2};
  EXPECT_EQ(broken_rule(0.0, closed), "");
  EXPECT_EQ(broken_rule(2.0, closed), "");
  EXPECT_EQ(broken_rule(2.5, closed), "must be >= 0, <= 2, got 2.5");
  EXPECT_EQ(broken_rule(std::int64_t{-1}, closed), "must be >= 0, <= 2, got -1");
  const FieldRule open{.min = 0, .min_exclusive = true};
  EXPECT_EQ(broken_rule(0.0, open), "must be > 0, got 0");
  EXPECT_EQ(broken_rule(1e-300, open), "");
  EXPECT_EQ(describe_rule(closed), ">= 0, <= 2");
  EXPECT_EQ(describe_rule(open), "> 0");
  EXPECT_EQ(describe_rule({.max = 0.5}), "<= 0.5");
}

TEST(ConfigRule, AWordThatIsNotAllowedComesWithTheNearest) {
  const FieldRule rule{.one_of = {"sgd", "adagrad"}};
  EXPECT_EQ(broken_rule(std::string("sgd"), rule), "");
  EXPECT_EQ(broken_rule(std::string("adagard"), rule),
            "must be one of: sgd, adagrad; got \"adagard\"; did you mean adagrad?");
  EXPECT_EQ(broken_rule(std::string(""), rule), "must be one of: sgd, adagrad; got \"\"");
  EXPECT_EQ(describe_rule(rule), "one of: sgd, adagrad");
}

TEST(ConfigRule, NumbersAreAsShortAsReadsBack) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(-2), "-2");
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(1e-8), "1e-08");
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 400) - 200);
    const std::string text = format_number(value);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    ASSERT_EQ(back, value) << text;
  }
}

TEST(ConfigRule, StringsAreQuotedWhereYamlWouldReadSomethingElse) {
  for (const char* plain : {"adagrad", "runs/a-b.c", "/data/x", "_x1a", "C1"}) {
    const bool starts_with_letter = plain[0] != '_';
    EXPECT_EQ(quote_string(plain), starts_with_letter ? plain : concat("\"", plain, "\""));
  }
  for (const char* other : {"", "true", "No", "Y", "null", "12", "-x", "a b", "a: b", "#", "*x"}) {
    EXPECT_EQ(quote_string(other), concat("\"", other, "\""));
  }
  EXPECT_EQ(quote_string("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quote_string("\t\n\x7F"), R"("\x09\x0a\x7f")");
}

TEST(ConfigRule, QuotedStringsReadBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::uint64_t n = random() % 6; n-- > 0;) text += static_cast<char>(random() % 127 + 1);
    EXPECT_EQ(YAML::Load(quote_string(text)).as<std::string>(), text) << quote_string(text);
  }
}

TEST(ConfigRule, ValuesAreWrittenAsYaml) {
  EXPECT_EQ(to_yaml(true), "true");
  EXPECT_EQ(to_yaml(std::int64_t{-3}), "-3");
  EXPECT_EQ(to_yaml(0.5), "0.5");
  EXPECT_EQ(to_yaml(Integers{}), "[]");
  EXPECT_EQ(to_yaml(Integers{8, 4}), "[8, 4]");
  EXPECT_EQ(to_yaml(std::vector<std::string>{"a", "no"}), "[a, \"no\"]");
}

TEST(ConfigRule, AZeroIsWrittenAsItsWord) {
  const FieldRule rule{.min = 1, .zero_word = "auto"};
  EXPECT_EQ(to_yaml(std::int64_t{0}, rule), "auto");
  EXPECT_EQ(to_yaml(std::int64_t{7}, rule), "7");
  EXPECT_EQ(to_yaml(std::int64_t{0}, FieldRule{}), "0");
}

}  // namespace
}  // namespace satrap::config_detail
