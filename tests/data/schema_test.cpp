#include "satrap/data/schema.h"

#include "satrap/data/validate.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

std::string config_error(const DataConfig& config) {
  return error_of([&] { validate(config); }, ErrorCode::kInvalidConfig);
}

TEST(Schema, CriteoIsBuiltIn) {
  DataConfig config;
  config.schema_name = "criteo";
  config.train.path = {"x"};
  validate(config);
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.text.columns.size(), 40U);
  EXPECT_EQ(schema.num_numeric_outputs(), 13);
  EXPECT_EQ(schema.num_features(), 26);
  EXPECT_EQ(schema.numeric_names.back(), "I13");
  EXPECT_EQ(schema.features.back().name, "C26");
  EXPECT_EQ(schema.numeric_inputs[0].config.transform, Transform::kLog1p);
  EXPECT_EQ(schema.id_columns[0].config.type, IdType::kHex);
  EXPECT_FALSE(schema.needs_fit());
  EXPECT_FALSE(schema.weighted);
}

TEST(Schema, ASyntheticLogHasTheColumnsOfItsGenerator) {
  DataConfig config;
  config.format = DataFormat::kSynthetic;
  config.synthetic.cardinalities = {10, 20};
  config.synthetic.num_numeric = 1;
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.num_features(), 2);
  EXPECT_EQ(schema.numeric_names, std::vector<std::string>{"I1"});
}

TEST(Schema, AnIndicatorFollowsItsInput) {
  DataConfig config = csv_config("x", {"a", "b"}, {});
  config.schema.numeric[0].missing_indicator = true;
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.numeric_names, (std::vector<std::string>{"a", "a.missing", "b"}));
  EXPECT_EQ(schema.numeric_inputs[1].output, 2);
}

TEST(Schema, AColumnIsParsedOnceHoweverManyUseIt) {
  DataConfig config = csv_config("x", {"age"}, {"age_range", "job"});
  config.schema.features[0].column = "age";
  config.schema.features[0].buckets.quantiles = 4;
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.raw_numeric, std::vector<Schema::RawNumber>{{"age"}});
  EXPECT_EQ(schema.bucketed[0].raw, 0);
  EXPECT_EQ(schema.bucketed[0].feature, 0);
  EXPECT_EQ(schema.id_columns[0].feature, 1);
  EXPECT_TRUE(schema.needs_fit());
}

TEST(Schema, AColumnMayBeANumberAndATime) {
  DataConfig config = csv_config("x", {"ts", "age"}, {"hour"});
  config.schema.numeric[1].column = "ts";
  config.schema.numeric[1].since = "born";
  config.schema.features[0].column = "ts";
  config.schema.features[0].part = DatePart::kHour;
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.raw_numeric,
            (std::vector<Schema::RawNumber>{{"ts", false}, {"ts", true}, {"born", true}}));
  EXPECT_EQ(schema.numeric_inputs[1].raw, 1);
  EXPECT_EQ(schema.numeric_inputs[1].since, 2);
  EXPECT_EQ(schema.dated[0].raw, 1);
  EXPECT_TRUE(schema.id_columns.empty());
}

TEST(Schema, ACrossReadsNoColumnAndComesAfterItsFeatures) {
  DataConfig config = csv_config("x", {}, {"a", "b", "a_b"});
  config.schema.features[2].cross = {"b", "a"};
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.id_columns.size(), 2U);
  EXPECT_EQ(schema.crosses[0].first, 1);
  EXPECT_EQ(schema.crosses[0].second, 0);
  EXPECT_EQ(schema.crosses[0].feature, 2);
  std::swap(config.schema.features[0], config.schema.features[2]);
  EXPECT_EQ(config_error(config),
            "data.schema.features: cross 'a_b' needs the feature 'b', and there is none before it");
}

TEST(Schema, NamesMustDiffer) {
  EXPECT_TRUE(
      contains(config_error(csv_config("x", {}, {"a", "a"})), "two features are named 'a'"));
}

TEST(DataConfigTest, RulesBetweenFieldsAreChecked) {
  const auto broken = [](auto change) {
    DataConfig config = csv_config("x", {"a"}, {"f"});
    change(config);
    return config_error(config);
  };
  EXPECT_TRUE(contains(broken([](auto& c) { c.train.path = {}; }), "data.train.path: is not set"));
  EXPECT_TRUE(
      contains(broken([](auto& c) { c.schema.delimiter = ", "; }), "must be one character"));
  EXPECT_TRUE(contains(broken([](auto& c) { c.schema.columns = {"y"}; }), "add header: false"));
  EXPECT_TRUE(contains(broken([](auto& c) { c.schema.numeric[0].clip = {2, 1}; }), "[low, high]"));
  EXPECT_TRUE(
      contains(broken([](auto& c) { c.schema.features[0].keep = KeptIds::kLast; }), "max_length"));
  EXPECT_TRUE(contains(broken([](auto& c) { c.schema.features[0].max_length = 3; }), "separator"));
  EXPECT_TRUE(contains(
      broken([](auto& c) { c.schema.features[0].buckets = {.quantiles = 2, .boundaries = {1.0}}; }),
      "either quantiles or boundaries"));
  EXPECT_TRUE(contains(broken([](auto& c) {
                         c.schema.features[0].buckets = {.quantiles = 0, .boundaries = {1.0, 1.0}};
                       }),
                       "ascending"));
  EXPECT_TRUE(contains(broken([](auto& c) {
                         c.schema.label.positive = {"a"};
                         c.schema.label.threshold = {1};
                       }),
                       "either positive or threshold"));
  EXPECT_TRUE(contains(broken([](auto& c) { c.train.path = c.eval.path = {"-"}; }), "is taken by"));
  EXPECT_TRUE(
      contains(broken([](auto& c) { c.format = DataFormat::kSynthetic; }), "its own columns"));
  EXPECT_TRUE(
      contains(broken([](auto& c) { c.format = DataFormat::kCriteo; }), "has its own schema"));
  EXPECT_TRUE(contains(broken([](auto& c) { c.schema = {}; }), "nothing to learn from"));
}

TEST(DataConfigTest, ParquetHasNoSettingsOfText) {
  DataConfig config = csv_config("day_*.parquet", {"age"}, {});
  validate(config);
  config.schema.delimiter = ";";
  EXPECT_EQ(config_error(config),
            "data.schema.delimiter: has no effect on Parquet, which names its columns and divides "
            "its values itself");
  config.eval.path = {"log.csv"};
  validate(config);  // it has one there
  config.eval.path.clear();
  config.schema.delimiter = ",";
  config.schema.header = false;
  EXPECT_TRUE(contains(config_error(config), "data.schema.header: has no effect on Parquet"));
  config.train.path = {"log"};
  validate(config);
  config.format = DataFormat::kParquet;
  EXPECT_TRUE(contains(config_error(config), "data.schema.header: has no effect on Parquet"));
  DataConfig criteo;
  criteo.schema_name = "criteo";
  criteo.format = DataFormat::kParquet;
  criteo.train.path = {"log"};
  validate(criteo);
  EXPECT_EQ(resolve_schema(criteo).features.size(), 26U);
}

TEST(DataConfigTest, ABrokenRuleNamesThePlaceOfItsValue) {
  DataConfig config = csv_config("x", {"a"}, {});
  config.schema.quote = "''";
  EXPECT_TRUE(contains(error_of([&] { validate(config, {{"data.schema.quote", "job.yaml:7"}}); },
                                ErrorCode::kInvalidConfig),
                       "job.yaml:7: data.schema.quote: must be one character"));
}

TEST(DataConfigTest, AnInputDoesNotReadALabel) {
  const auto refusal = [](const DataConfig& config) {
    return error_of([&] { validate(config); }, ErrorCode::kInvalidConfig);
  };
  DataConfig config = csv_config("x", {"a", "b"}, {});
  validate(config);
  config.schema.label.column = "b";
  EXPECT_TRUE(contains(refusal(config), "column 'b' is the label's; an input must not read it"));
  config = csv_config("x", {}, {"f"});
  config.schema.label = LabelConfig();
  config.schema.features[0].column = "clicked";
  config.schema.labels = {{.name = "c", .source = {.column = "clicked"}},
                          {.name = "d", .source = {.column = "bought"}}};
  EXPECT_TRUE(contains(refusal(config), "data.schema.features.0: column 'clicked' is the label's"));
  config.schema.features[0].column = "";
  config.schema.features[0].columns = {"user", "bought"};
  EXPECT_TRUE(contains(refusal(config), "data.schema.features.0: column 'bought' is the label's"));
}

class SchemaFileTest : public FilesTest {};

TEST_F(SchemaFileTest, IsReadIntoTheConfiguration) {
  write("schema.yaml",
        "delimiter: \"\\t\"\n"
        "label: {column: clicked, threshold: 4}\n"
        "numeric: [{name: price, transform: log1p_zscore, clip: [0, 100]}]\n"
        "features:\n"
        "  - {name: history, type: int, separator: \"|\", max_length: 20, keep: last}\n"
        "  - {name: price_range, column: price, buckets: {boundaries: [1, 10]}}\n");
  DataConfig config;
  config.schema_name = path_of("schema.yaml");
  config.train.path = {"x"};
  inline_schema_file(config);
  EXPECT_EQ(config.schema_name, "");
  validate(config);
  const Schema schema = resolve_schema(config);
  EXPECT_EQ(schema.text.delimiter, "\t");
  EXPECT_EQ(schema.text.label.threshold, std::vector<double>{4});
  EXPECT_EQ(schema.features[0].max_length, 20);
  EXPECT_EQ(schema.bucketed[0].config.buckets.boundaries, (std::vector<double>{1, 10}));
}

TEST_F(SchemaFileTest, AMissingFileIsNamed) {
  DataConfig config;
  config.schema_name = "criteoo";
  EXPECT_TRUE(contains(error_of([&] { inline_schema_file(config); }, ErrorCode::kInvalidConfig),
                       "'criteoo' is neither the built-in schema criteo nor a file"));
}

TEST_F(SchemaFileTest, ADumpedConfigurationReadsBackTheSame) {
  DataConfig config = csv_config("x", {"a"}, {"b"});
  config.schema.numeric[0].clip = {0, 5};
  config.schema.features[0].separator = "|";
  const std::string path = write("dump.yaml", dump_config(config));
  DataConfig again;
  load_config(again, path);
  EXPECT_EQ(dump_config(again), dump_config(config));
  EXPECT_EQ(again.schema.features[0].separator, "|");
}

}  // namespace
}  // namespace satrap::data
