#include "src/data/rows/cross_limit.h"

#include <array>

#include <gmock/gmock.h>

#include "satrap/core/hash.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Bags `a` and `b`, the number `n` in ranges, and crosses of them.
class CrossLimitTest : public FilesTest {
 protected:
  static DataConfig job(const std::string& path) {
    DataConfig config;
    config.train.path = {path};
    config.schema.label.column = "y";
    config.schema.features = {
        {.name = "a", .type = IdType::kInt, .separator = " "},
        {.name = "b", .type = IdType::kInt, .separator = " ", .missing = MissingId::kOwnId},
        {.name = "n", .buckets = {.boundaries = {1, 2}}}};
    return config;
  }

  static void cross(DataConfig& config,
                    const std::string& name,
                    const std::string& first,
                    const std::string& second,
                    MissingId missing = MissingId::kEmpty) {
    config.schema.features.push_back({.name = name, .missing = missing, .cross = {first, second}});
  }

  static std::string bag(std::size_t size) {
    std::string ids;
    for (std::size_t i = 0; i < size; ++i) ids += concat(i == 0 ? "" : " ", i);
    return ids;
  }

  static std::string row(std::size_t a, std::size_t b, const std::string& n) {
    return concat("1,", bag(a), ",", bag(b), ",", n, "\n");
  }

  static std::vector<std::int64_t> numbers(const ReadResult& result) {
    std::vector<std::int64_t> numbers;
    for (const ParsedRow& parsed : result.rows) numbers.push_back(parsed.number);
    return numbers;
  }
};

TEST_F(CrossLimitTest, ARowOfMorePairsIsBadAndNamesCrossAndBags) {
  DataConfig config = job(write("log.csv", "y,a,b,n\n" + row(256, 256, "1") + row(256, 257, "1") +
                                               row(0, 70'000, "1") + row(65'536, 0, "1") +
                                               row(65'537, 0, "1") + row(1, 1, "")));
  EXPECT_EQ(read_text(config).num_bad, 0);  // long bags are no harm without a cross
  cross(config, "both", "a", "b");
  const ReadResult result = read_text(config);
  EXPECT_THAT(numbers(result), ElementsAre(0, 2, 3, 5));
  EXPECT_EQ(result.num_bad, 2);
  ASSERT_FALSE(result.bad.empty());
  EXPECT_THAT(result.bad.front(),
              HasSubstr("log.csv:3: cross 'both': more than 65536 pairs of ids in a row; give its "
                        "features a max_length, got \"256 x 257\""));
}

TEST_F(CrossLimitTest, AKeptLengthOfTheBagsLimitsThePairs) {
  DataConfig config = job(write("log.csv", "y,a,b,n\n" + row(3000, 4000, "1")));
  cross(config, "both", "a", "b");
  EXPECT_EQ(read_text(config).num_bad, 1);
  config.schema.features[0].max_length = config.schema.features[1].max_length = 256;
  EXPECT_EQ(read_text(config).num_bad, 0);
}

TEST_F(CrossLimitTest, LinesOfJsonHaveIt) {
  std::string list = "0";
  for (int i = 1; i < 300; ++i) list += concat(",", i);
  const auto line = [](const std::string& a, const std::string& b) {
    return concat(R"({"y":1,"n":1,"a":[)", a, R"(],"b":[)", b, "]}\n");
  };
  DataConfig config = job(write("log.jsonl", line(list, list) + line(list, "7")));
  config.schema.features[0].separator = config.schema.features[1].separator = "";
  cross(config, "both", "a", "b");
  const ReadResult result = read_text(config);
  EXPECT_THAT(numbers(result), ElementsAre(1));
  ASSERT_FALSE(result.bad.empty());
  EXPECT_THAT(result.bad.front(), HasSubstr("log.jsonl:1: cross 'both': more than 65536 pairs"));
}

TEST_F(CrossLimitTest, PredictionKeepsTheLine) {
  DataConfig config = job(write("log.csv", "y,a,b,n\n" + row(999, 999, "1") + row(1, 1, "1")));
  cross(config, "both", "a", "b");
  const ReadResult result = read_text(config, RowPass{.keeps_every_line = true});
  EXPECT_THAT(numbers(result), ElementsAre(0, 1));
  EXPECT_TRUE(result.rows[0].bags[0].empty());
  EXPECT_EQ(result.rows[1].bags[0].size(), 1U);
}

/// The pairs of two bags, one by one.
std::size_t count_pairs(std::size_t first, std::size_t second, bool own_id) {
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < first; ++a) {
    for (std::size_t b = 0; b < second; ++b) ++pairs;
  }
  return pairs == 0 && own_id ? 1 : pairs;
}

TEST_F(CrossLimitTest, RandomRowsAndCrossesOfCrossesAgreeWithCounting) {
  const RandomStream random{7};
  std::uint64_t draws = 0;
  constexpr std::array<std::size_t, 8> kSizes{0, 1, 2, 16, 40, 41, 256, 300};
  std::string text = "y,a,b,n\n";
  std::vector<std::int64_t> good;
  for (std::int64_t r = 0; r < 300; ++r) {
    const std::size_t a = kSizes[random.below(draws++, kSizes.size())];
    const std::size_t b = kSizes[random.below(draws++, kSizes.size())];
    const bool has_number = random.below(draws++, 3) > 0;
    text += row(a, b, has_number ? "1" : "");
    const std::size_t ids_of_b = b == 0 ? 1 : b, ids_of_n = has_number ? 1 : 0;
    const std::size_t ab = count_pairs(a, ids_of_b, true);
    const std::size_t na = count_pairs(ids_of_n, a, false);
    const std::size_t aba = ab <= 65'536 ? count_pairs(ab, na, false) : 0;
    if (ab <= 65'536 && na <= 65'536 && aba <= 65'536) good.push_back(r);
  }
  DataConfig config = job(write("log.csv", text));
  cross(config, "ab", "a", "b", MissingId::kOwnId);
  cross(config, "na", "n", "a");
  cross(config, "aba", "ab", "na");
  ASSERT_GT(good.size(), 100U);
  ASSERT_LT(good.size(), 250U);
  EXPECT_EQ(numbers(read_text(config)), good);
}

}  // namespace
}  // namespace satrap::data
