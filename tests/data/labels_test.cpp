#include <algorithm>
#include <cmath>
#include <cstring>

#include "satrap/core/log.h"
#include "satrap/data/inspect.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/validate.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Floats = std::vector<float>;

/// Rows with a click, a purchase and a number.
class LabelsTest : public FilesTest {
 protected:
  LabelsTest() { set_log_level(LogLevel::kOff); }
  ~LabelsTest() override { set_log_level(LogLevel::kInfo); }

  DataConfig config_of(const std::string& text) const {
    DataConfig config;
    config.train.path = {write("log.csv", text)};
    config.eval.path = config.train.path;
    config.schema.numeric.emplace_back().name = "n";
    add_label(config, "click");
    add_label(config, "buy");
    return config;
  }

  static void add_label(DataConfig& config, const std::string& column) {
    config.schema.labels.emplace_back().source.column = column;
  }

  static std::vector<Batch> read(const DataConfig& config, Role role = Role::kTrain) {
    const Schema schema = resolve_schema(config);
    const auto source = open_batches(Dataset(config), fixed_transforms(schema), role, {});
    std::vector<Batch> batches;
    for (Batch batch; source->next(batch);) batches.push_back(batch);
    return batches;
  }

  static std::string refused(const DataConfig& config, const ConfigOrigins& origins = {}) {
    return error_of([&] { validate(config, origins); }, ErrorCode::kInvalidConfig);
  }
};

TEST_F(LabelsTest, ARowHasEveryLabelInTheOrderOfTheSchema) {
  const DataConfig config = config_of("buy,n,click\n0,7,1\n1,8,1\n0,9,0\n");
  const std::vector<Batch> batches = read(config);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].num_examples, 3);
  EXPECT_EQ(batches[0].num_labels, 2);
  EXPECT_EQ(batches[0].labels, (Floats{1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(batches[0].numeric, (Floats{7, 8, 9}));
}

TEST_F(LabelsTest, BatchesAreCutBetweenRows) {
  DataConfig config = config_of("click,buy,n\n1,0,1\n0,1,2\n1,1,3\n");
  config.batch_size = 2;
  const std::vector<Batch> batches = read(config);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].labels, (Floats{1, 0, 0, 1}));
  EXPECT_EQ(batches[1].labels, (Floats{1, 1}));
}

TEST_F(LabelsTest, OneColumnMayGiveSeveralLabels) {
  DataConfig config = config_of("rating,n\n5,1\n3,2\n1,3\n");
  config.schema.labels.resize(2);
  config.schema.labels[0] = {.name = "liked", .source = {.column = "rating", .threshold = {3}}};
  config.schema.labels[1] = {.name = "loved", .source = {.column = "rating", .threshold = {5}}};
  EXPECT_EQ(read(config).at(0).labels, (Floats{1, 1, 1, 0, 0, 0}));
}

TEST_F(LabelsTest, ARowIsBadIfALabelCannotBeRead) {
  DataConfig config = config_of("click,buy,n\n1,x,1\n0,1,2\n2,1,3\n1,0,4\n");
  config.max_bad_rows = "0";
  const std::vector<Batch> batches = read(config);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].labels, (Floats{0, 1, 1, 0}));
  EXPECT_EQ(batches[0].numeric, (Floats{2, 4}));
}

/// With -1 for what is missing.
Floats shown(const Batch& batch) {
  Floats labels;
  for (const float label : batch.labels) labels.push_back(std::isnan(label) ? -1.0F : label);
  return labels;
}

TEST_F(LabelsTest, SomeOfSeveralLabelsMayBeMissing) {
  DataConfig config = config_of("click,buy,n\n1,,1\nnan,1,2\n,,3\n1,0,4\n");
  EXPECT_EQ(shown(read(config).at(0)), (Floats{1, -1, -1, 1, 1, 0}));
  EXPECT_EQ(read(config).at(0).numeric, (Floats{1, 2, 4}));  // a row without any teaches nothing
  EXPECT_EQ(shown(read(config, Role::kEval).at(0)), (Floats{1, -1, -1, 1, -1, -1, 1, 0}));
  config.schema.labels[1].source.positive = {"1"};
  config.schema.labels[1].source.negative = {"0"};
  EXPECT_EQ(shown(read(config).at(0)), (Floats{1, -1, -1, 1, 1, 0}));
  config.shuffle_rows = 2;
  EXPECT_EQ(read(config).at(0).num_examples, 3);
}

TEST_F(LabelsTest, ANumberIsAsItIsWritten) {
  DataConfig config = config_of(
      "click,buy,n\n1,-2.5,1\n0,1e-3,2\n1,16777217,3\n0,nan,4\n1,inf,5\n0,x,6\n1,4e38,7\n0,true,8\n"
      "1,0.1,9\n");
  config.schema.labels[1].source.type = LabelType::kNumber;
  config.max_bad_rows = "0";
  const Batch batch = read(config).at(0);
  EXPECT_EQ(batch.numeric, (Floats{1, 2, 3, 4, 8, 9})) << "inf, text and what is too large are bad";
  EXPECT_EQ(shown(batch), (Floats{1, -2.5F, 0, 1e-3F, 1, 16777216.0F, 0, -1, 0, 1, 1, 0.1F}));
}

TEST_F(LabelsTest, TheOnlyNumberMayNotBeMissing) {
  DataConfig config = config_of("click,n\n3,1\n,2\nnan,3\n-4,4\n");
  config.schema.labels.pop_back();
  config.schema.labels[0].source.type = LabelType::kNumber;
  config.max_bad_rows = "0";
  EXPECT_EQ(read(config).at(0).labels, (Floats{3, -4}));
  config.schema.decimal = Decimal::kComma;
  config.schema.delimiter = ";";
  config.train.path = {write("comma.csv", "click;n\n1,25;1\n")};
  config.eval.path.clear();
  EXPECT_EQ(read(config).at(0).labels, (Floats{1.25F}));
}

TEST_F(LabelsTest, AClassIsAWholeNumber) {
  DataConfig config = config_of("click,n\n0,1\n2,2\n3,3\n-1,4\n1.0,5\n0.5,6\nx,7\n,8\n");
  config.schema.labels.pop_back();
  config.schema.labels[0].source.classes = 3;
  config.max_bad_rows = "0";
  EXPECT_EQ(read(config).at(0).labels, (Floats{0, 2, 1}));
}

TEST_F(LabelsTest, AClassMayHaveAText) {
  DataConfig config = config_of("click,n\nred,1\nblue,2\n\"green\",3\npink,4\n,5\nRed,6\n17.0,7\n");
  config.schema.labels.pop_back();
  config.schema.labels[0].source.classes = 4;
  config.schema.labels[0].source.values = {"red", "17", "green", "blue"};
  config.max_bad_rows = "0";
  EXPECT_EQ(read(config).at(0).labels, (Floats{0, 3, 2, 1}));
}

TEST_F(LabelsTest, WhatDoesNotGoWithANumberOrClassesIsRefused) {
  DataConfig config = config_of("click,buy,n\n1,0,1\n");
  LabelConfig& label = config.schema.labels[1].source;
  const auto error_with = [&](const LabelConfig& other) {
    label = other;
    return refused(config);
  };
  using enum LabelType;
  EXPECT_TRUE(contains(error_with({.column = "buy", .type = kNumber, .threshold = {3}}),
                       "data.schema.labels.1.threshold: is for labels of 0 and 1, and does not go "
                       "with type: number; leave one of them out"));
  EXPECT_TRUE(contains(error_with({.column = "buy", .type = kNumber, .positive = {"a"}}),
                       "labels.1.positive: is for labels of 0 and 1"));
  EXPECT_TRUE(contains(error_with({.column = "buy", .type = kNumber, .positive_weight = 2}),
                       "labels.1.positive_weight: is for labels of 0 and 1, and does not go with "
                       "type: number; data.schema.weight names a column of weights"));
  EXPECT_TRUE(contains(error_with({.column = "buy", .type = kNumber, .classes = 3}),
                       "labels.1.classes: does not go with type: number"));
  EXPECT_TRUE(
      contains(error_with({.column = "buy", .classes = 3}),
               "labels.1.classes: a label of classes must be the only one, and there are 2"));
  label = {.column = "buy", .type = kNumber};
  EXPECT_NO_THROW(validate(config, {}));
  config.schema.labels.erase(config.schema.labels.begin());
  LabelConfig& only = config.schema.labels[0].source;
  const auto error_of_only = [&](const LabelConfig& other) {
    only = other;
    return refused(config);
  };
  only = {.column = "buy", .classes = 2};
  EXPECT_NO_THROW(validate(config, {}));
  only.values = {"a", "b"};
  EXPECT_NO_THROW(validate(config, {}));
  EXPECT_TRUE(contains(error_of_only({.column = "buy", .classes = 1}),
                       "labels.0.classes: must be at least 2"));
  EXPECT_TRUE(contains(error_of_only({.column = "buy", .classes = 3, .values = {"a", "b"}}),
                       "labels.0.values: has 2 texts, and `classes` is 3; write classes: 2"));
  EXPECT_TRUE(contains(error_of_only({.column = "buy", .values = {"a", "b"}}),
                       "labels.0.values: has no effect without classes; write classes: 2"));
  EXPECT_TRUE(contains(error_of_only({.column = "buy", .classes = 2, .values = {"1", "1.0"}}),
                       "labels.0.values: two classes have the text '1'"));
  EXPECT_TRUE(contains(error_of_only({.column = "buy", .classes = 2, .values = {"", "b"}}),
                       "labels.0.values: has an empty text"));
  EXPECT_TRUE(contains(error_of_only({.column = "buy", .classes = 2, .values = {"a\tb", "b"}}),
                       "labels.0.values: has control characters"));
  EXPECT_TRUE(
      contains(error_of_only({.column = "buy", .threshold = {1}, .classes = 2}),
               "labels.0.threshold: is for labels of 0 and 1, and does not go with classes"));
}

TEST_F(LabelsTest, TheOnlyLabelMayNotBeMissing) {
  DataConfig config = config_of("click,buy,n\n1,,1\n,1,2\n");
  config.schema.labels.pop_back();
  config.max_bad_rows = "0";
  EXPECT_EQ(read(config).at(0).numeric, (Floats{1}));
}

TEST_F(LabelsTest, ShufflingKeepsTheLabelsOfARowTogether) {
  std::string text = "click,buy,n\n";
  for (int r = 0; r < 500; ++r) {
    text += std::to_string(r % 2) + "," + std::to_string(r % 3 == 0 ? 1 : 0) + "," +
            std::to_string(r) + "\n";
  }
  DataConfig config = config_of(text);
  config.shuffle_rows = 64;
  config.batch_size = 500;
  const Batch batch = read(config).at(0);
  ASSERT_EQ(batch.num_examples, 500);
  EXPECT_FALSE(std::is_sorted(batch.numeric.begin(), batch.numeric.end()));
  for (std::size_t r = 0; r < 500; ++r) {
    const int row = static_cast<int>(batch.numeric[r]);
    EXPECT_EQ(batch.labels[2 * r], static_cast<float>(row % 2));
    EXPECT_EQ(batch.labels[2 * r + 1], row % 3 == 0 ? 1.0F : 0.0F);
  }
}

TEST_F(LabelsTest, PredictionReadsNoneOfThem) {
  const std::vector<Batch> batches = read(config_of("n\n4\nx\n6\n"), Role::kPredict);
  ASSERT_EQ(batches.size(), 1U);
  ASSERT_EQ(batches[0].labels.size(), 6U);
  EXPECT_EQ(batches[0].labels[0], 0.0F);
  EXPECT_TRUE(std::isnan(batches[0].labels[2]));
  EXPECT_TRUE(std::isnan(batches[0].labels[3]));
  EXPECT_EQ(batches[0].labels[4], 0.0F);
}

TEST_F(LabelsTest, WithoutAHeaderPredictionMissesTheColumnsOfAllLabels) {
  DataConfig config = config_of("4\n6\n");
  config.schema.header = false;
  config.schema.columns = {"click", "n", "buy"};
  EXPECT_EQ(read(config, Role::kPredict).at(0).numeric, (Floats{4, 6}));
}

/// Rows for predict from a file without a header, whose columns are click, n, buy, m.
class WithoutHeader : public LabelsTest {
 protected:
  DataConfig file(const std::string& text) const {
    DataConfig config = config_of(text);
    config.schema.header = false;
    config.schema.columns = {"click", "n", "buy", "m"};
    config.schema.numeric.emplace_back().name = "m";
    return config;
  }

  /// The numbers of all lines; "-" for a line without a row.
  static std::string numbers(const DataConfig& config) {
    std::string text;
    for (const Batch& batch : read(config, Role::kPredict)) {
      const std::size_t labels = batch.labels.size() / static_cast<std::size_t>(batch.num_examples);
      const std::size_t width = batch.numeric.size() / static_cast<std::size_t>(batch.num_examples);
      for (std::size_t i = 0; i < batch.numeric.size(); ++i) {
        const bool usable = !std::isnan(batch.labels[i / width * labels]);
        if (!usable && i % width > 0) continue;
        text += usable ? std::to_string(static_cast<int>(batch.numeric[i])) : "-";
        text += ' ';
      }
    }
    return text;
  }

  static std::string refused_file(const DataConfig& config) {
    return error_of([&] { read(config, Role::kPredict); }, ErrorCode::kInvalidConfig);
  }
};

TEST_F(WithoutHeader, AFileHasAllLabelsOrNone) {
  EXPECT_EQ(numbers(file("1,4,0,5\n0,6,1,7\n")), "4 5 6 7 ");
  EXPECT_EQ(numbers(file("4,5\n6,7\n")), "4 5 6 7 ");
}

TEST_F(WithoutHeader, TheFirstLineThatIsNotBlankTellsTheColumns) {
  const std::string lines = "4,5\n\n6,7\n";
  EXPECT_EQ(numbers(file("\n" + lines)), "- 4 5 - 6 7 ");
  EXPECT_EQ(numbers(file("\r\n" + lines)), "- 4 5 - 6 7 ");
  EXPECT_EQ(numbers(file("\n\r\n\n" + lines)), "- - - 4 5 - 6 7 ");
  EXPECT_EQ(numbers(file("\xEF\xBB\xBF\n" + lines)), "- 4 5 - 6 7 ");
  EXPECT_EQ(numbers(file("\n1,4,0,5\n")), "- 4 5 ");
}

TEST_F(WithoutHeader, AFileOfOtherColumnsIsRefusedWithTheirNumbers) {
  for (const char* line : {"1,4,5", "4", "1,4,0,5,6"}) {  // one label; a short line; a long one
    const std::string error = refused_file(file(concat("\n", line, "\n4,5\n")));
    const auto columns = std::count(line, line + std::strlen(line), ',') + 1;
    EXPECT_TRUE(contains(error, concat("log.csv:2: ", columns, " column"))) << error;
    EXPECT_TRUE(contains(error, "the schema has 4, or 2 without those of all labels")) << error;
  }
}

TEST_F(WithoutHeader, ALaterLineOfOtherColumnsIsABadOne) {
  EXPECT_EQ(numbers(file("4,5\n1,4,5\n6,7\n")), "4 5 - 6 7 ");
}

TEST_F(WithoutHeader, ALabelMadeOfAnInputIsNotMissing) {
  DataConfig config = file("4,5\n6,7\n");
  config.schema.labels[1] = {.name = "many", .source = {.column = "n", .threshold = {3}}};
  config.schema.columns = {"click", "n", "m"};
  EXPECT_EQ(numbers(config), "4 5 6 7 ");
}

TEST_F(WithoutHeader, ABlankFileHasLinesAndNoColumns) { EXPECT_EQ(numbers(file("\n\n")), "- - "); }

TEST_F(WithoutHeader, NumberedColumnsAreCountedOnALineThatIsNotBlank) {
  DataConfig config = config_of("\n1,4,0\n");
  config.schema.header = false;
  config.schema.labels[0].source.column = "0";
  config.schema.labels[1].source.column = "2";
  config.schema.numeric[0].column = "1";
  EXPECT_EQ(read(config).at(0).labels, (Floats{1, 0}));
  EXPECT_EQ(numbers(config), "- 4 ");
}

TEST_F(LabelsTest, ALabelIsCalledAsItsColumnUnlessItHasAName) {
  DataConfig config = config_of("click,buy,n\n1,1,1\n");
  config.schema.labels[1].name = "purchase";
  const Schema schema = resolve_schema(config);
  ASSERT_EQ(schema.num_labels(), 2);
  EXPECT_EQ(schema.labels[0].name, "click");
  EXPECT_EQ(schema.labels[1].name, "purchase");
}

TEST_F(LabelsTest, TheOneOfLabelIsAListOfOne) {
  const DataConfig config = csv_config(write("log.csv", "y,n\n1,1\n0,2\n"), {"n"}, {});
  const Schema schema = resolve_schema(config);
  ASSERT_EQ(schema.num_labels(), 1);
  EXPECT_EQ(schema.labels[0].name, "y");
  EXPECT_EQ(schema.labels[0].weight, 1.0);
  EXPECT_EQ(read(config).at(0).labels, (Floats{1, 0}));
}

TEST_F(LabelsTest, LabelAndLabelsAreNotBothWritten) {
  DataConfig config = config_of("click,buy,n\n1,1,1\n");
  config.schema.label.column = "y";
  const std::string error = refused(config, {{"data.schema.labels", "job.yaml:7"}});
  EXPECT_TRUE(error.starts_with("job.yaml:7: data.schema.labels: ")) << error;
  EXPECT_TRUE(contains(error, "'y'")) << error;
}

TEST_F(LabelsTest, NamesAreUnique) {
  DataConfig config = config_of("click,buy,n\n1,1,1\n");
  config.schema.labels[1].name = "click";
  EXPECT_TRUE(contains(refused(config), "two labels are named 'click'"));
}

TEST_F(LabelsTest, ANameIsOneWordOrMoreOfALine) {
  DataConfig config = config_of("click,buy,n\n1,1,1\n");
  std::string& name = config.schema.labels[1].name;
  for (const char* fine : {"", "a third", "\xC3\xA9t\xC3\xA9", "click/buy"}) {
    name = fine;
    EXPECT_NO_THROW(validate(config)) << fine;
  }
  for (const char* broken : {"a\tb", "a\n", "\r", "\x1B[1m", "\x7F"}) {
    name = broken;
    const std::string error = refused(config, {{"data.schema.labels.1.name", "job.yaml:9"}});
    EXPECT_TRUE(error.starts_with("job.yaml:9: data.schema.labels.1.name: ")) << error;
    EXPECT_TRUE(contains(error, "control character")) << error;
  }
  EXPECT_TRUE(contains(refused(config), "got the byte 127 at place 0"));
}

TEST_F(LabelsTest, AColumnWhoseNameCannotBeThatOfALabelNeedsAnother) {
  DataConfig config = config_of("click,buy,n\n1,1,1\n");
  std::string& column = config.schema.labels[1].source.column;
  column = "a\tb";
  EXPECT_TRUE(contains(refused(config), "data.schema.labels.1.column: a label's name has no"));
  column = "";
  EXPECT_TRUE(contains(refused(config), "data.schema.labels.1.column: a label without a name"));
  config.schema.labels[1].name = "buy";
  column = "a\tb";
  EXPECT_NO_THROW(validate(config));
}

TEST_F(LabelsTest, AWeightIsNeitherNothingNorEverything) {
  const auto load = [&](const std::string& weight) {
    NamedLabelConfig label;
    load_config(label, write("label.yaml", "{column: click, weight: " + weight + "}\n"));
    return label.weight;
  };
  EXPECT_EQ(load("1.0e-6"), 1e-6);
  EXPECT_EQ(load("1.0e+6"), 1e6);
  for (const char* weight : {"0.0", "-1.0", "9.0e-7", "1.1e+6", "1.0e+39"}) {
    const std::string error = error_of([&] { load(weight); }, ErrorCode::kInvalidConfig);
    EXPECT_TRUE(contains(error, "weight: must be >= 1e-06, <= 1e+06, got ")) << error;
  }
}

TEST_F(LabelsTest, TheRulesOfALabelHoldForEach) {
  DataConfig config = config_of("click,buy,n\n1,1,1\n");
  config.schema.labels[1].source.negative = {"no"};
  const std::string error = refused(config, {{"data.schema.labels.1.negative", "job.yaml:9"}});
  EXPECT_TRUE(contains(error, "job.yaml:9: data.schema.labels.1.negative")) << error;
}

TEST_F(LabelsTest, AMadeUpLogHasOne) {
  DataConfig config;
  config.format = DataFormat::kSynthetic;
  add_label(config, "click");
  EXPECT_TRUE(contains(refused(config), "data.schema.labels: a synthetic log has one label"));
}

TEST_F(LabelsTest, AMissingColumnIsNamedWithItsLabel) {
  const DataConfig config = config_of("click,n\n1,1\n");
  const std::string error = error_of([&] { read(config); }, ErrorCode::kInvalidConfig);
  EXPECT_TRUE(contains(error, "no column 'buy', which label 'buy' reads")) << error;
}

TEST_F(LabelsTest, ALookAtTheDataShowsEach) {
  const DataConfig config = config_of("click,buy,n\n1,0,1\n1,1,2\n0,0,3\n1,0,4\n");
  EXPECT_TRUE(
      describe_head(Dataset(config), Role::kTrain, 1).starts_with("row 0: click 1, buy 0\n"));
  EXPECT_TRUE(describe_stats(Dataset(config), Role::kTrain, 0)
                  .starts_with("4 rows, click 75.0000%, buy 25.0000% positive, 0 bad rows\n"));
}

}  // namespace
}  // namespace satrap::data
