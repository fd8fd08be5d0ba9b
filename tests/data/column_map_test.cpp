#include "src/data/text/column_map.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Kind = ColumnMap::Kind;
using ::testing::ElementsAre;

/// A label y, the numbers n and m, and the features s (string), i (int) and h (hex).
DataConfig mapped_config() {
  DataConfig config = csv_config("none.csv", {"n", "m"}, {"s", "i", "h"});
  config.schema.features[1].type = IdType::kInt;
  config.schema.features[2].type = IdType::kHex;
  return config;
}

/// "skip", "label 0", "number 1", "int 2", "hex 3"; the general parser: the number of users.
std::vector<std::string> show_columns(const DataConfig& config, const std::string& line) {
  static constexpr const char* kNames[] = {"skip", "label", "number", "int", "hex", "general"};
  const ColumnMap map(resolve_schema(config), line, "log.csv:1");
  std::vector<std::string> shown;
  for (const ColumnMap::Column& column : map.columns()) {
    const std::string name = kNames[static_cast<std::size_t>(column.kind)];
    if (column.kind == Kind::kSkip) {
      EXPECT_TRUE(column.consumers.empty());
      shown.push_back(name);
    } else if (column.kind == Kind::kGeneral) {
      shown.push_back(concat(name, " of ", column.consumers.size()));
    } else {
      EXPECT_EQ(column.consumers.size(), 1U);
      shown.push_back(concat(name, " ", column.target));
    }
  }
  return shown;
}

TEST(ColumnMap, ColumnsAreFoundByTheHeaderInAnyOrder) {
  EXPECT_THAT(
      show_columns(mapped_config(), "h,x,m,y,i,n,s"),
      ElementsAre("hex 2", "skip", "number 1", "label 0", "int 1", "number 0", "general of 1"));
}

TEST(ColumnMap, AColumnOfSeveralUsersNeedsTheGeneralParser) {
  DataConfig config = mapped_config();
  config.schema.features[1].column = "n";
  EXPECT_THAT(show_columns(config, "y,n,m,s,h"),
              ElementsAre("label 0", "general of 2", "number 1", "general of 1", "hex 2"));
}

TEST(ColumnMap, BagsAndLabelsOfWordsNeedTheGeneralParser) {
  DataConfig config = mapped_config();
  config.schema.features[1].separator = "|";
  config.schema.label.positive = {"yes"};
  EXPECT_THAT(
      show_columns(config, "y,n,m,s,i,h"),
      ElementsAre("general of 1", "number 0", "number 1", "general of 1", "general of 1", "hex 2"));
}

TEST(ColumnMap, AMissingTokenThatLooksLikeANumberMakesAllParsersGeneral) {
  DataConfig config = mapped_config();
  config.schema.missing = {"NA"};
  EXPECT_EQ(show_columns(config, "y,n,m,s,i,h")[1], "number 0");
  config.schema.missing = {"NA", "-1"};
  for (const std::string& shown : show_columns(config, "y,n,m,s,i,h")) {
    EXPECT_EQ(shown, "general of 1");
  }
}

TEST(ColumnMap, WithoutAHeaderColumnsAreNumberedOrNamedByTheSchema) {
  DataConfig config;
  config.schema.header = false;
  config.schema.label.column = "0";
  config.schema.numeric.emplace_back().name = "2";
  EXPECT_THAT(show_columns(config, "7,8,9"), ElementsAre("label 0", "skip", "number 0"));
  config.schema.columns = {"2", "a", "0"};
  EXPECT_THAT(show_columns(config, "7,8,9"), ElementsAre("number 0", "skip", "label 0"));
}

TEST(ColumnMap, DataToPredictMayLackTheColumnsThatOnlyLabelsUse) {
  DataConfig config = csv_config("none.csv", {"n"}, {"s"});
  config.schema.header = false;
  config.schema.columns = {"y", "n", "s"};
  Schema schema = resolve_schema(config);
  const auto names = [&](const std::string& line) {
    std::vector<std::string> all;
    const ColumnMap map(schema, line, "log.csv:1");
    for (const ColumnMap::Column& column : map.columns()) all.push_back(column.name);
    return all;
  };
  schema.labelled = false;
  EXPECT_THAT(names("1,2,3"), ElementsAre("y", "n", "s"));
  EXPECT_THAT(names("2,3"), ElementsAre("n", "s"));
  EXPECT_EQ(error_of([&] { names("3"); }, ErrorCode::kInvalidConfig),
            "log.csv:1: 1 column; the schema has 3, or 2 without those of all labels");
}

TEST(ColumnMap, AColumnThatIsNotThereIsNamedWithItsUser) {
  const auto problem = [](const DataConfig& config, const std::string& line) {
    return error_of([&] { show_columns(config, line); }, ErrorCode::kInvalidConfig);
  };
  DataConfig config = csv_config("none.csv", {"price"}, {});
  EXPECT_EQ(problem(config, "y,prize"),
            "log.csv:1: there is no column 'price', which a number reads; did you mean 'prize'?");
  EXPECT_EQ(problem(config, "clicked,price"),
            "log.csv:1: there is no column 'y', which the label reads; the header has 2 columns, "
            "the first is 'clicked'");
  EXPECT_EQ(problem(config, "y,price,price"),
            "log.csv:1: two columns are named 'price', which a number reads");
  config.schema.header = false;
  EXPECT_EQ(problem(config, "1,2"),
            "log.csv:1: the label reads column 'y'; without a header and without `columns`, "
            "columns are numbered from 0 and this file has 0 to 1");
}

TEST(ColumnMap, TwoUnusedColumnsMayHaveTheSameName) {
  EXPECT_THAT(show_columns(csv_config("none.csv", {}, {"s"}), "x,y,s,x"),
              ElementsAre("skip", "label 0", "general of 1", "skip"));
}

TEST(SplitLine, FieldsAreTrimmedAndUnquoted) {
  const SchemaConfig text;
  EXPECT_THAT(split_line(text, ""), ElementsAre(""));
  EXPECT_THAT(split_line(text, "a"), ElementsAre("a"));
  EXPECT_THAT(split_line(text, ",a,"), ElementsAre("", "a", ""));
  EXPECT_THAT(split_line(text, " a b ,\tc\r"), ElementsAre("a b", "c"));
  EXPECT_THAT(split_line(text, R"("a, ""b""", "c" )"), ElementsAre("a, \"b\"", "c"));
  EXPECT_THAT(split_line(text, R"(a"b,"c)"), ElementsAre("a\"b", "c"));
}

TEST(SplitLine, WithoutTrimmingAndQuotesEveryByteCounts) {
  SchemaConfig text;
  text.delimiter = "\t";
  EXPECT_THAT(split_line(text, "\t a \t\t"), ElementsAre("", "a", "", ""));
  text.trim = false;
  text.quote = "";
  EXPECT_THAT(split_line(text, " a \t\"b\""), ElementsAre(" a ", "\"b\""));
}

TEST(SplitLine, QuotedFieldsComeBackWhateverIsInThem) {
  std::mt19937_64 random(1);
  constexpr std::string_view kBytes = "ab ,\"\t'\\";
  for (int i = 0; i < 500; ++i) {
    std::vector<std::string> fields(random() % 4 + 1);
    std::string line;
    for (std::string& field : fields) {
      for (std::uint64_t n = random() % 6; n-- > 0;) field += kBytes[random() % kBytes.size()];
      std::string quoted;
      for (const char c : field) quoted += c == '"' ? "\"\"" : std::string(1, c);
      if (&field != fields.data()) line += ",";
      line += "\"" + quoted + "\"";
    }
    ASSERT_EQ(split_line({}, line), fields) << line;
  }
}

}  // namespace
}  // namespace satrap::data
