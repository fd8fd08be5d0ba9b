#include "src/checkpoint/config_changes.h"

#include <functional>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/job/tiny_job.h"

namespace satrap::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

/// Two features, a sequence and a bag, one number, and a separate table for each feature.
job::JobConfig text_job() {
  job::JobConfig config;
  config.run_dir = "runs/a";
  config.data.format = data::DataFormat::kCsv;
  config.data.train.path = {"train.csv"};
  config.data.schema.label.column = "clicked";
  config.data.schema.numeric.resize(1);
  config.data.schema.numeric[0].name = "price";
  config.data.schema.features.resize(2);
  config.data.schema.features[0].name = "history";
  config.data.schema.features[0].max_length = 20;
  config.data.schema.features[1].name = "user.id";
  config.data.schema.features[1].max_length = 5;
  config.tables["default"];
  config.features["default"];
  config.features["history"].pooling = Pooling::kSequence;
  config.model.type = job::ModelType::kFfnn;
  return config;
}

struct Case {
  const char* key;
  std::function<void(job::JobConfig&)> edit;
  const char *before, *after;
  ChangeKind kind;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.key << ": " << c.after; }

class EveryChange : public testing::TestWithParam<Case> {};

TEST_P(EveryChange, IsNamedWithBothValuesAndWhatItMeans) {
  const Case& c = GetParam();
  const job::JobConfig before = text_job();
  job::JobConfig after = before;
  c.edit(after);
  const std::vector<ConfigChange> changes = config_changes(before, after);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, c.key);
  EXPECT_EQ(changes[0].before, c.before);
  EXPECT_EQ(changes[0].after, c.after);
  EXPECT_EQ(changes[0].kind, c.kind) << changes[0].reason;
  EXPECT_EQ(changes[0].reason.empty(), c.kind != ChangeKind::kImpossible);
}

constexpr auto kImpossible = ChangeKind::kImpossible;
constexpr auto kInput = ChangeKind::kInput;
constexpr auto kTraining = ChangeKind::kTraining;
constexpr auto kOutput = ChangeKind::kOutput;

INSTANTIATE_TEST_SUITE_P(
    ConfigChanges,
    EveryChange,
    testing::Values(
        Case{"run_dir", [](job::JobConfig& c) { c.run_dir = "runs/b"; }, "runs/a", "runs/b",
             kOutput},
        Case{"seed", [](job::JobConfig& c) { c.seed = 2; }, "1", "2", kImpossible},
        Case{"data.schema.features",
             [](job::JobConfig& c) {
               std::swap(c.data.schema.features[0], c.data.schema.features[1]);
             },
             "[history, user.id]", "[user.id, history]", kImpossible},
        Case{"data.schema.features.user.id.type",
             [](job::JobConfig& c) { c.data.schema.features[1].type = data::IdType::kInt; },
             "string", "int", kImpossible},
        Case{"data.schema.features.user.id.buckets.quantiles",
             [](job::JobConfig& c) { c.data.schema.features[1].buckets.quantiles = 9; }, "0", "9",
             kImpossible},
        Case{"data.schema.features.user.id.part",
             [](job::JobConfig& c) { c.data.schema.features[1].part = data::DatePart::kHour; },
             "none", "hour", kImpossible},
        Case{"data.schema.features.user.id.zone",
             [](job::JobConfig& c) { c.data.schema.features[1].zone = "Asia/Tokyo"; }, "UTC",
             "Asia/Tokyo", kImpossible},
        Case{"data.schema.numeric.price.since",
             [](job::JobConfig& c) { c.data.schema.numeric[0].since = "begin"; }, "\"\"", "begin",
             kImpossible},
        Case{"data.schema.numeric.price.unit",
             [](job::JobConfig& c) { c.data.schema.numeric[0].unit = data::AgeUnit::kHour; }, "d",
             "h", kImpossible},
        Case{"data.schema.features.history.max_length",
             [](job::JobConfig& c) { c.data.schema.features[0].max_length = 21; }, "20", "21",
             kImpossible},
        Case{"data.schema.features.user.id.max_length",
             [](job::JobConfig& c) { c.data.schema.features[1].max_length = 6; }, "5", "6", kInput},
        Case{"data.schema.features.user.id.column",
             [](job::JobConfig& c) { c.data.schema.features[1].column = "uid"; }, "user.id", "uid",
             kInput},
        Case{"data.schema.numeric", [](job::JobConfig& c) { c.data.schema.numeric.clear(); },
             "[price]", "[]", kImpossible},
        Case{"data.schema.numeric.price.transform",
             [](job::JobConfig& c) {
               c.data.schema.numeric[0].transform = data::Transform::kZscore;
             },
             "none", "zscore", kImpossible},
        Case{"data.schema.numeric.price.missing_indicator",
             [](job::JobConfig& c) { c.data.schema.numeric[0].missing_indicator = true; }, "false",
             "true", kImpossible},
        Case{"data.schema.numeric.price.fill",
             [](job::JobConfig& c) { c.data.schema.numeric[0].fill = 0.5; }, "0", "0.5", kInput},
        Case{"data.schema.label.column",
             [](job::JobConfig& c) { c.data.schema.label.column = "bought"; }, "clicked", "bought",
             kInput},
        Case{"data.schema.missing", [](job::JobConfig& c) { c.data.schema.missing = {"?"}; }, "[]",
             "[?]", kInput},
        Case{"data.schema.trim", [](job::JobConfig& c) { c.data.schema.trim = false; }, "true",
             "false", kInput},
        Case{"data.train.path", [](job::JobConfig& c) { c.data.train.path = {"a.csv", "b.csv"}; },
             "[train.csv]", "[a.csv, b.csv]", kInput},
        Case{"data.eval.max_rows", [](job::JobConfig& c) { c.data.eval.max_rows = 5; }, "0", "5",
             kTraining},
        Case{"data.batch_size", [](job::JobConfig& c) { c.data.batch_size = 99; }, "auto", "99",
             kInput},
        Case{"data.fit_rows", [](job::JobConfig& c) { c.data.fit_rows = 9; }, "1000000", "9",
             kOutput},
        Case{"tables.default.dim", [](job::JobConfig& c) { c.tables["default"].dim = 8; }, "16",
             "8", kImpossible},
        Case{"tables.default.weights",
             [](job::JobConfig& c) { c.tables["default"].weights = FloatType::kBf16; }, "fp32",
             "bf16", kImpossible},
        Case{"tables.default.optimizer.type",
             [](job::JobConfig& c) { c.tables["default"].optimizer.type = RowOptimizerType::kSgd; },
             "adagrad", "sgd", kImpossible},
        Case{"tables.default.optimizer.lr",
             [](job::JobConfig& c) { c.tables["default"].optimizer.lr = 0.5; }, "0.02", "0.5",
             kTraining},
        Case{"tables.default.init.scale",
             [](job::JobConfig& c) { c.tables["default"].init.scale = 0.5; }, "0.01", "0.5",
             kTraining},
        Case{"tables.user.id.dim",
             [](job::JobConfig& c) {
               c.tables["user.id"] = c.tables["default"];
               c.tables["user.id"].dim = 8;
             },
             "16", "8", kImpossible},
        Case{"features.user.id.table",
             [](job::JobConfig& c) { c.features["user.id"].table = "history"; }, "own", "history",
             kImpossible},
        Case{"features.default.pooling",
             [](job::JobConfig& c) { c.features["default"].pooling = Pooling::kMean; }, "sum",
             "mean", kImpossible},
        Case{"model.top", [](job::JobConfig& c) { c.model.top = {64}; }, "[512, 256]", "[64]",
             kImpossible},
        Case{"model.head", [](job::JobConfig& c) { c.model.head = {8}; }, "[]", "[8]", kImpossible},
        Case{"model.heads.experts", [](job::JobConfig& c) { c.model.heads.experts = 8; }, "4", "8",
             kImpossible},
        Case{"model.activation",
             [](job::JobConfig& c) { c.model.activation = job::Activation::kNone; }, "relu", "none",
             kImpossible},
        Case{"model.dropout", [](job::JobConfig& c) { c.model.dropout = 0.5; }, "0", "0.5",
             kTraining},
        Case{"dense_optimizer.type",
             [](job::JobConfig& c) { c.dense_optimizer.type = DenseOptimizerType::kAdamW; }, "adam",
             "adamw", kImpossible},
        Case{"dense_optimizer.momentum",
             [](job::JobConfig& c) { c.dense_optimizer.momentum = 0.9; }, "0", "0.9", kImpossible},
        Case{"dense_optimizer.schedule.warmup_steps",
             [](job::JobConfig& c) { c.dense_optimizer.schedule.warmup_steps = 7; }, "0", "7",
             kTraining},
        Case{"embedding.store", [](job::JobConfig& c) { c.embedding.store = job::StoreKind::kPs; },
             "embedded", "ps", kTraining},
        Case{"embedding.cache.memory", [](job::JobConfig& c) { c.embedding.cache.memory = "1GiB"; },
             "0", "1GiB", kOutput},
        Case{"embedding.cache.eviction",
             [](job::JobConfig& c) { c.embedding.cache.eviction = job::Eviction::kLru; }, "auto",
             "lru", kOutput},
        Case{"train.mode", [](job::JobConfig& c) { c.train.mode = job::TrainMode::kSync; },
             "hybrid", "sync", kInput},
        Case{"train.staleness", [](job::JobConfig& c) { c.train.staleness = 1; }, "4", "1", kInput},
        Case{"model.engine", [](job::JobConfig& c) { c.model.engine = job::Engine::kGraph; },
             "auto", "graph", kTraining},
        Case{"device", [](job::JobConfig& c) { c.device = job::JobDevice::kCuda; }, "cpu", "cuda",
             kTraining},
        Case{"train.epochs", [](job::JobConfig& c) { c.train.epochs = 2; }, "1", "2", kTraining},
        Case{"train.threads", [](job::JobConfig& c) { c.train.threads = 2; }, "0", "2", kOutput},
        Case{"train.warm_start.from", [](job::JobConfig& c) { c.train.warm_start.from = "x"; },
             "\"\"", "x", kImpossible},
        Case{"checkpoint.every", [](job::JobConfig& c) { c.checkpoint.every = "never"; }, "10min",
             "never", kOutput}));

TEST(ConfigChanges, EveryKeyOfTheSchemaButTheLabelsChangesPredictions) {
  data::SchemaConfig schema = text_job().data.schema;
  schema.labels.resize(1);
  const std::vector<ConfigValue> keys = config_values(dump_config(schema), "schema");
  ASSERT_GT(keys.size(), 20U);
  for (const ConfigValue& key : keys) {
    const PredictionEffect effect =
        effect_on_predictions({concat("data.schema.", key.path), "a", "b"});
    const bool is_label = key.path.starts_with("label");
    const bool makes_outputs =
        is_label && (key.path.ends_with(".type") || key.path.ends_with(".classes") ||
                     key.path.ends_with(".values"));
    EXPECT_EQ(effect.reason.empty(), (is_label && !makes_outputs) || key.path == "weight")
        << key.path;
    EXPECT_EQ(effect.is_fit, !makes_outputs) << key.path;
  }
}

TEST(ConfigChanges, ThereAreNoneBetweenEqualOnes) {
  EXPECT_THAT(config_changes(text_job(), text_job()), IsEmpty());
  EXPECT_THAT(config_changes(job::tiny_job("a"), job::tiny_job("a")), IsEmpty());
}

TEST(ConfigChanges, AnOldCheckpointsAutoIsTheCpu) {
  const job::JobConfig before = text_job();
  ASSERT_EQ(before.device, job::JobDevice::kAuto);
  job::JobConfig after = text_job();
  after.device = job::JobDevice::kCpu;
  EXPECT_THAT(config_changes(before, after), IsEmpty());
}

TEST(ConfigChanges, AreAllNamedAtOnceInTheOrderOfTheConfiguration) {
  job::JobConfig after = text_job();
  after.train.epochs = 3;
  after.seed = 2;
  after.data.schema.features[0].type = data::IdType::kHex;
  const auto key = [](const char* name) { return Field(&ConfigChange::key, name); };
  EXPECT_THAT(
      config_changes(text_job(), after),
      ElementsAre(key("data.schema.features.history.type"), key("seed"), key("train.epochs")));
}

TEST(ConfigChanges, AnEntryThatSaysWhatDefaultSaidIsNone) {
  job::JobConfig after = text_job();
  after.tables["user.id"] = after.tables["default"];
  after.features["user.id"] = after.features["default"];
  EXPECT_THAT(config_changes(text_job(), after), IsEmpty());
  EXPECT_THAT(config_changes(after, text_job()), IsEmpty());
}

/// A job with two labels.
job::JobConfig job_of_labels() {
  job::JobConfig config = text_job();
  config.data.schema.label = {};
  config.data.schema.labels.resize(2);
  config.data.schema.labels[0].source.column = "clicked";
  config.data.schema.labels[1].source.column = "bought";
  return config;
}

TEST(ConfigChanges, LabelsMayChangeTheirColumnAndWeightButNotTheirNumberAndOrder) {
  const job::JobConfig before = job_of_labels();
  const auto change = [&](const std::function<void(std::vector<data::NamedLabelConfig>&)>& edit) {
    job::JobConfig after = before;
    edit(after.data.schema.labels);
    const std::vector<ConfigChange> changes = config_changes(before, after);
    EXPECT_EQ(changes.size(), 1U);
    return changes.at(0);
  };
  const ConfigChange order = change([](auto& labels) { std::swap(labels[0], labels[1]); });
  EXPECT_EQ(order.key, "data.schema.labels");
  EXPECT_EQ(order.before, "[clicked, bought]");
  EXPECT_EQ(order.after, "[bought, clicked]");
  EXPECT_EQ(order.kind, kImpossible);
  EXPECT_EQ(change([](auto& labels) { labels.pop_back(); }).kind, kImpossible);
  const ConfigChange weight = change([](auto& labels) { labels[1].weight = 2; });
  EXPECT_EQ(weight.key, "data.schema.labels.bought.weight");
  EXPECT_EQ(weight.kind, kTraining);
  EXPECT_EQ(change([](auto& labels) { labels[1].source.threshold = {3}; }).kind, kInput);
}

TEST(ConfigChanges, OneLabelMayBeWrittenAsAList) {
  job::JobConfig after = job_of_labels();
  after.data.schema.labels.pop_back();
  EXPECT_THAT(config_changes(text_job(), after), IsEmpty());
  EXPECT_THAT(config_changes(after, text_job()), IsEmpty());
}

TEST(ConfigChanges, ADefaultThatNothingUsesIsNone) {
  job::JobConfig before = text_job();
  before.tables["user.id"] = before.tables["history"] = before.tables["default"];
  job::JobConfig after = before;
  after.tables["default"].dim = 3;
  EXPECT_THAT(config_changes(before, after), IsEmpty());
}

TEST(ConfigChanges, ASchemaIsComparedByWhatItDescribes) {
  job::JobConfig before = text_job();
  before.data.format = data::DataFormat::kAuto;
  before.data.schema_name = "criteo";
  before.features = {};
  job::JobConfig after = before;
  after.data.schema_name.clear();
  after.data.schema = data::criteo_schema();
  EXPECT_THAT(config_changes(before, after), IsEmpty());
  after.data.schema.features[0].name = "C1..C25";
  EXPECT_THAT(config_changes(before, after),
              ElementsAre(AllOf(Field(&ConfigChange::key, "data.schema.features"),
                                Field(&ConfigChange::kind, ChangeKind::kImpossible))));
}

}  // namespace
}  // namespace satrap::checkpoint
