#include "satrap/data/columns.h"

#include "satrap/core/log.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/row_block.h"
#include "satrap/data/schema.h"
#include "satrap/data/validate.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

/// The use of each column, and features of several columns.
class ColumnsTest : public FilesTest {
 protected:
  ColumnsTest() { set_log_level(LogLevel::kOff); }
  ~ColumnsTest() override { set_log_level(LogLevel::kInfo); }

  static std::string describe(const DataConfig& config) {
    return describe_columns(Dataset(config), Role::kTrain);
  }

  /// A feature `h` of the columns h1..h3, numbers as ids.
  DataConfig history(const std::string& text) const {
    DataConfig config = csv_config(write("log.csv", text), {}, {"h"});
    config.schema.features[0].columns = {"h1..h3"};
    config.schema.features[0].type = IdType::kInt;
    return config;
  }
};

using Bag = std::vector<std::uint64_t>;

TEST_F(ColumnsTest, EachSaysWhatItIsUsedFor) {
  DataConfig config = csv_config(write("log.csv", "y,n,a,tags,left\n1,2,x,p|q,5\n"), {"n"}, {"a"});
  config.schema.numeric[0].transform = Transform::kLog1p;
  config.schema.features.push_back({.name = "range", .column = "n", .buckets = {.quantiles = 4}});
  FeatureConfig& tags = config.schema.features.emplace_back();
  tags.name = "tags";
  tags.separator = "|";
  config.group_by = "a";
  const std::string text = describe(config);
  EXPECT_TRUE(contains(text, "  1 file, "));
  EXPECT_TRUE(contains(text, "\n  y     label\n"));
  EXPECT_TRUE(contains(text, "\n  n     number, log1p; feature 'range', cut into ranges\n"));
  EXPECT_TRUE(contains(text, "\n  a     feature 'a', string\n"));
  EXPECT_TRUE(contains(text, "\n  tags  feature 'tags', string, ids separated by '|'\n"));
  EXPECT_TRUE(contains(text, "\n  left  not read\n"));
}

TEST_F(ColumnsTest, ATimeNamesWhatIsMadeOfIt) {
  DataConfig config = csv_config(write("log.csv", "y,ts,born\n1,2026-11-20,2026-11-19\n"),
                                 {"age", "born"}, {"hour"});
  config.schema.numeric[0].column = "ts";
  config.schema.numeric[0].since = "born";
  config.schema.features[0].column = "ts";
  config.schema.features[0].part = DatePart::kHour;
  const std::string text = describe(config);
  EXPECT_TRUE(contains(text, "\n  ts    time; feature 'hour', hour in UTC; end of 'age'\n"))
      << text;
  EXPECT_TRUE(contains(text, "\n  born  number; time; begin of 'age'\n") ||
              contains(text, "\n  born  time; begin of 'age'; number\n"))
      << text;
}

TEST_F(ColumnsTest, ThoseOfATopicAreInTheSchema) {
  DataConfig config = csv_config("kafka://broker/clicks", {"n"}, {"a"});
  config.schema.header = false;
  config.schema.columns = {"y", "n", "a", "left"};
  const std::string text = describe(config);
  EXPECT_TRUE(contains(text, "  messages of kafka://broker/clicks\n"));
  EXPECT_TRUE(contains(text, "\n  n     number"));
  EXPECT_TRUE(contains(text, "\n  left  not read\n"));
  config.schema.header = true;
  config.schema.columns = {};
  config.format = DataFormat::kJson;
  EXPECT_TRUE(contains(describe(config), "\n  a  feature 'a', string\n"));
}

TEST_F(ColumnsTest, EveryFileMustFit) {
  DataConfig config = csv_config(write("1.csv", "y,a\n1,x\n"), {}, {"a"});
  config.train.path.push_back(write("2.csv", "y,b\n1,x\n"));
  EXPECT_TRUE(contains(error_of([&] { describe(config); }, ErrorCode::kInvalidConfig),
                       "2.csv:1: there is no column 'a'"));
  config.train.path = {path_of("none.csv")};
  EXPECT_TRUE(contains(error_of([&] { describe(config); }, ErrorCode::kIo), "none.csv"));
}

TEST_F(ColumnsTest, SeveralMakeOneFeature) {
  const DataConfig config = history("y,h1,h2,h3\n1,5,,7\n0,,,\n1,1,2,3\n");
  validate(config);
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.features[0].max_length, 3) << "for a sequence";
  const ReadResult result = read_text(config);
  ASSERT_EQ(result.rows.size(), 3U);
  EXPECT_EQ(result.rows[0].bags[0], (Bag{5, 7}));
  EXPECT_EQ(result.rows[1].bags[0], Bag{});
  EXPECT_EQ(result.rows[2].bags[0], (Bag{1, 2, 3}));
}

TEST_F(ColumnsTest, ABagOfSeveralKeepsItsLastIds) {
  DataConfig config = history("y,h1,h2,h3\n1,1,2,3\n");
  config.schema.features[0].max_length = 2;
  EXPECT_EQ(read_text(config).rows[0].bags[0], (Bag{1, 2}));
  config.schema.features[0].keep = KeptIds::kLast;
  EXPECT_EQ(read_text(config).rows[0].bags[0], (Bag{2, 3}));
}

TEST_F(ColumnsTest, AMissingOneMayHaveAnId) {
  DataConfig config = history("y,h1,h2,h3\n1,5,nan,\n");
  config.schema.features[0].missing = MissingId::kOwnId;
  EXPECT_EQ(read_text(config).rows[0].bags[0].size(), 3U);
}

TEST_F(ColumnsTest, SeveralOutOfOrderAreRefused) {
  DataConfig config = history("y,h2,h1,h3\n1,1,2,3\n");
  EXPECT_TRUE(contains(error_of([&] { read_text(config); }, ErrorCode::kInvalidConfig),
                       "list `columns` in the file's order"));
}

TEST_F(ColumnsTest, SeveralNeedANameAndNoColumn) {
  DataConfig config = history("y,h1,h2,h3\n");
  config.schema.features[0].column = "h1";
  EXPECT_TRUE(contains(error_of([&] { validate(config); }, ErrorCode::kInvalidConfig),
                       "data.schema.features.0.columns: replaces column, which is 'h1'"));
  config.schema.features[0] = {};
  config.schema.features[0].name = "h";
  config.schema.features[0].column = "h1..h3";
  config.schema.features[0].type = IdType::kInt;
  EXPECT_TRUE(contains(error_of([&] { validate(config); }, ErrorCode::kInvalidConfig),
                       "to make one bag or sequence of them write `columns: h1..h3`"));
}

TEST_F(ColumnsTest, ABadRowCountsForTheReasonWithoutItsValue) {
  DataConfig config = csv_config(write("log.csv", "y,n\n1,a\n0,b\n1\n1,2\n"), {"n"}, {});
  const Schema schema = resolve_schema(config);
  config.max_bad_rows = "0";
  const auto source = open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {});
  Batch batch;
  while (source->next(batch)) continue;
  const std::map<std::string, std::int64_t> expected = {{"column 'n': expected a number", 2},
                                                        {"expected 2 columns", 1}};
  EXPECT_EQ(source->bad_row_reasons(), expected);
}

TEST_F(ColumnsTest, APartForEvaluationIsSaidToBeOne) {
  DataConfig config = csv_config(write("log.csv", "y,n\n1,3\n0,4\n"), {"n"}, {});
  config.eval.fraction = 0.5;
  EXPECT_EQ(describe_columns(Dataset(config), Role::kEval),
            "  a part of the rows of the training data (data.eval.fraction)\n");
}

TEST_F(ColumnsTest, KeptOnesAreTextWhateverElseReadsThem) {
  DataConfig config =
      csv_config(write("log.csv", "y,id,n\n1,\"a,b\",3\n0,c,x\n1,d\n\n"), {"n"}, {"id"});
  config.eval.path = config.train.path;
  const auto source = open_batches(Dataset(config), fixed_transforms(resolve_schema(config)),
                                   Role::kPredict, {.kept = {"n", "id"}});
  Batch batch;
  ASSERT_TRUE(source->next(batch));
  ASSERT_EQ(batch.num_examples, 4);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"3", "a,b"}, {"x", "c"}, {"", ""}, {"", ""}};  // a bad field, too few fields, a blank line
  for (std::int64_t r = 0; r < 4; ++r) {
    const auto& [n, id] = expected[static_cast<std::size_t>(r)];
    EXPECT_EQ(batch.kept[0].at(r), n) << r;
    EXPECT_EQ(batch.kept[1].at(r), id) << r;
  }
}

}  // namespace
}  // namespace satrap::data
