#include "src/data/rows/canonical_text.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Texts2 = std::vector<std::pair<std::string, std::string>>;

TEST(CanonicalTextTest, OfATextIsThatOfItsValue) {
  const Texts2 cases = {
      {"true", "true"},
      {"True", "true"},
      {"TRUE", "true"},
      {"False", "false"},
      {"tru", "tru"},
      {"truth", "truth"},
      {"falsy", "falsy"},
      {"", ""},
      {"17.0", "17"},
      {"17.", "17"},
      {"17.000", "17"},
      {"-17.0", "-17"},
      {"+17.0", "17"},
      {"0.0", "0"},
      {"-0.0", "0"},
      {"007.0", "7"},
      {"000.0", "0"},
      {"1.0E7", "10000000"},
      {"3e+09", "3000000000"},
      {"1e+16", "1e+16"},
      {"1.5e3", "1500"},
      {"-2.5E+1", "-25"},
      {"12345678901234567890.0", "12345678901234567890"},
      // These stay: versions, hex digits, dates, what is not whole or not sure to be.
      {"17", "17"},
      {"007", "007"},
      {"1.10", "1.10"},
      {"2.5", "2.5"},
      {"1.0.0", "1.0.0"},
      {"1e5", "1e5"},
      {"12345e10", "12345e10"},
      {".0", ".0"},
      {"1.0x", "1.0x"},
      {"1.5e0", "1.5e0"},
      {"1.0e300", "1.0e300"},
      {"-", "-"},
      {"2026-11-28", "2026-11-28"},
      {"1,0", "1,0"},
      {"1.0e", "1.0e"},
      {"10.0.0.1", "10.0.0.1"}};
  CanonicalText canonical('.');
  for (const auto& [text, expected] : cases) EXPECT_EQ(canonical.of_text(text), expected) << text;
}

TEST(CanonicalTextTest, FollowsTheDecimalComma) {
  CanonicalText canonical(',');
  EXPECT_EQ(canonical.of_text("17,0"), "17");
  EXPECT_EQ(canonical.of_text("-1,5E3"), "-1500");
  EXPECT_EQ(canonical.of_text("17.0"), "17.0");
  EXPECT_EQ(canonical.of_text("17.000"), "17.000");
}

TEST(CanonicalTextTest, OfANumberIsThatOfItsValue) {
  const Texts2 cases = {{"17", "17"},
                        {"17.0", "17"},
                        {"1e5", "100000"},
                        {"1E+5", "100000"},
                        {"0.10", "0.1"},
                        {"1e-4", "0.0001"},
                        {"0.00001", "1e-05"},
                        {"1.5e16", "1.5e+16"},
                        {"1e16", "1e+16"},
                        {"-0", "-0"},
                        {"-0.0", "0"},
                        {"2.50", "2.5"},
                        {"18446744073709551616", "18446744073709551616"}};
  CanonicalText canonical('.');
  for (const auto& [text, expected] : cases) EXPECT_EQ(canonical.of_number(text), expected) << text;
}

/// Written anew, a canonical text stays.
TEST(CanonicalTextTest, IsItsOwn) {
  const RandomStream random{5};
  CanonicalText canonical('.'), again('.');
  constexpr std::string_view kBytes = "0123456789.-+eEtrufals";
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t k = 0; k < 1 + random.bits(i) % 8; ++k) {
      text += kBytes[random.bits(i * 8 + k + 1'000'000) % (k < 2 ? 11 : kBytes.size())];
    }
    const std::string once(canonical.of_text(text));
    EXPECT_EQ(again.of_text(once), once) << text;
  }
}

class ValueRuleTest : public FilesTest {
 protected:
  /// The ids of column x of these rows of JSON, as a text or as an integer.
  std::vector<std::vector<std::uint64_t>> ids(const std::string& name,
                                              const std::string& text,
                                              IdType type,
                                              std::int64_t rule) {
    DataConfig config;
    config.train.path = {write(name, text)};
    config.schema.labels.clear();
    config.schema.label.column = "y";
    FeatureConfig& feature = config.schema.features.emplace_back();
    feature.name = "x";
    feature.type = type;
    config.schema.value_rule = rule;
    config.format = name.ends_with(".csv") ? DataFormat::kCsv : DataFormat::kJson;
    const ReadResult result = read_text(config);
    EXPECT_TRUE(result.bad.empty() || rule == 1) << result.bad.front();
    std::vector<std::vector<std::uint64_t>> found;
    for (const ParsedRow& row : result.rows) found.push_back(row.bags.at(0));
    return found;
  }
};

TEST_F(ValueRuleTest, AValueIsOneIdInTextAndJson) {
  const std::string csv = "y,x\n1,True\n0,false\n1,17.0\n0,-3.0\n1,0.1\n0,1e+16\n1,1.0E7\n";
  const std::string json =
      "{\"y\": 1, \"x\": true}\n{\"y\": 0, \"x\": false}\n{\"y\": 1, \"x\": 17}\n"
      "{\"y\": 0, \"x\": -3.0}\n{\"y\": 1, \"x\": 0.10}\n{\"y\": 0, \"x\": 1e16}\n"
      "{\"y\": 1, \"x\": 10000000}\n";
  const auto expected = ids("a.csv", csv, IdType::kString, 2);
  ASSERT_EQ(expected.size(), 7U);
  EXPECT_EQ(ids("a.jsonl", json, IdType::kString, 2), expected);
  EXPECT_EQ(expected[0], std::vector<std::uint64_t>{hash_bytes("true")});
  EXPECT_EQ(expected[2], std::vector<std::uint64_t>{hash_bytes("17")});
  EXPECT_NE(ids("a.jsonl", json, IdType::kString, 1), ids("a.csv", csv, IdType::kString, 1));
  EXPECT_EQ(ids("a.csv", csv, IdType::kString, 1)[0],
            std::vector<std::uint64_t>{hash_bytes("True")});
}

TEST_F(ValueRuleTest, AWholeNumberIsAnInteger) {
  const std::string csv =
      "y,x\n1,True\n0,FALSE\n1,17.0\n0,-3.0\n1,18446744073709551615.0\n0,1.7E1\n";
  using Ids = std::vector<std::vector<std::uint64_t>>;
  EXPECT_EQ(ids("a.csv", csv, IdType::kInt, 2),
            (Ids{{1}, {0}, {17}, {static_cast<std::uint64_t>(-3)}, {UINT64_MAX}, {17}}));
  EXPECT_TRUE(ids("a.csv", csv, IdType::kInt, 1).empty());
  EXPECT_EQ(
      ids("a.jsonl", "{\"y\": 1, \"x\": 17.0}\n{\"y\": 0, \"x\": 1e5}\n{\"y\": 0, \"x\": true}\n",
          IdType::kInt, 2),
      (Ids{{17}, {100000}, {1}}));
}

TEST_F(ValueRuleTest, TextsOfALabelAreThoseOfTheirValues) {
  DataConfig config;
  config.train.path = {write("a.csv", "y,n\nTRUE,1\nfalse,2\n")};
  config.schema.numeric.emplace_back().name = "n";
  config.schema.label = {.column = "y", .positive = {"True"}, .negative = {"False"}};
  const ReadResult result = read_text(config);
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].label, 1.0F);
  EXPECT_EQ(result.rows[1].label, 0.0F);
  config.schema.label = {.column = "y", .positive = {"1"}, .negative = {"0"}};
  EXPECT_EQ(read_text(config).rows.at(0).label, 1.0F);  // as of a column of truth values
  config.schema.value_rule = 1;
  EXPECT_TRUE(read_text(config).rows.empty());
}

/// A number that is the threshold means 1, and the next smaller one 0, for decimals of up to three
/// digits and whole numbers beyond those of a float.
TEST_F(ValueRuleTest, ALabelIsComparedAsADouble) {
  std::vector<std::pair<std::string, std::string>> limits = {
      {"16777217", "16777216"},
      {"1764316801", "1764316800"},
      {"9007199254740992", "9007199254740991"}};
  for (int i = 1; i < 1000; i += 37) {
    const auto decimal = [](int thousandths) {
      return "0." + std::to_string(1000 + thousandths).substr(1);
    };
    limits.emplace_back(decimal(i), decimal(i - 1) + "9999999");
  }
  for (const auto& [limit, below] : limits) {
    DataConfig config;
    config.train.path = {write("a.csv", "y,n\n" + limit + ",1\n" + below + ",2\n")};
    config.schema.numeric.emplace_back().name = "n";
    config.schema.label = {.column = "y", .threshold = {std::stod(limit)}};
    const ReadResult result = read_text(config);
    ASSERT_EQ(result.rows.size(), 2U);
    EXPECT_EQ(result.rows[0].label, 1.0F) << limit;
    EXPECT_EQ(result.rows[1].label, 0.0F) << below;
  }
}

}  // namespace
}  // namespace satrap::data
