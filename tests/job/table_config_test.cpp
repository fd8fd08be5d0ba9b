#include "satrap/job/table_config.h"

#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<data::SchemaFeature> kSchema = {{.name = "user", .max_length = 0},
                                                  {.name = "item", .max_length = 0},
                                                  {.name = "history", .max_length = 5}};

std::string refusal_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "no error";
}

std::string resolve_error(const std::map<std::string, TableConfig>& tables,
                          const std::map<std::string, FeatureConfig>& features) {
  return refusal_of([&] { resolve_specs(tables, features, kSchema, 0); });
}

std::vector<std::string> names(const ResolvedSpecs& specs) {
  std::vector<std::string> result;
  for (const table::TableSpec& table : specs.tables) result.push_back(table.name);
  return result;
}

TEST(ResolveSpecs, GivesEveryFeatureATableOfItsNameByDefault) {
  TableConfig base;
  base.dim = 8;
  TableConfig item = base;
  item.dim = 4;
  const ResolvedSpecs specs = resolve_specs({{"default", base}, {"item", item}}, {}, kSchema, 0);
  EXPECT_THAT(names(specs), ElementsAre("history", "item", "user"));
  EXPECT_EQ(specs.tables[0].dim, 8);
  EXPECT_EQ(specs.tables[1].dim, 4);
  EXPECT_EQ(specs.tables[1].id, TableId{1});
  ASSERT_EQ(specs.features.size(), 3U);
  EXPECT_EQ(specs.features[0].name, "user");
  EXPECT_EQ(specs.features[0].table, TableId{2});
  EXPECT_EQ(specs.features[2].table, TableId{0});
  EXPECT_EQ(specs.features[2].pooling, Pooling::kSum);
  EXPECT_EQ(specs.features[2].max_length, 1);
}

TEST(ResolveSpecs, FeaturesShareTheTableTheyName) {
  const ResolvedSpecs specs =
      resolve_specs({{"default", {}}},
                    {{"default", {}},
                     {"item", {.table = "things", .pooling = Pooling::kMean}},
                     {"history", {.table = "things", .pooling = Pooling::kSequence}}},
                    kSchema, 1);
  EXPECT_THAT(names(specs), ElementsAre("things", "user"));
  EXPECT_EQ(specs.tables[0].dim, 17) << "16 and the model's extra column";
  EXPECT_EQ(specs.features[1].table, specs.features[2].table);
  EXPECT_EQ(specs.features[1].pooling, Pooling::kMean);
  EXPECT_EQ(specs.features[2].pooling, Pooling::kSequence);
  EXPECT_EQ(specs.features[2].max_length, 5);
}

TEST(ResolveSpecs, CopiesTheOptimizer) {
  TableConfig config;
  config.optimizer = {.type = RowOptimizerType::kFtrl,
                      .lr = 0.5,
                      .weight_decay = 0.25,
                      .initial_accumulator = 2,
                      .beta = 3,
                      .l1 = 4,
                      .l2 = 5};
  config.optimizer.schedule.warmup_steps = 9;
  config.init = {.type = table::InitType::kNormal, .scale = 0.125};
  config.weights = FloatType::kFp16;
  config.capacity_rows = 7;
  config.ttl_steps = 9;
  config.admit_after = 3;
  const table::TableSpec spec = resolve_specs({{"default", config}}, {}, kSchema, 0).tables[0];
  EXPECT_EQ(spec.optimizer.type, RowOptimizerType::kFtrl);
  EXPECT_EQ(spec.optimizer.lr, 0.5F);
  EXPECT_EQ(spec.optimizer.weight_decay, 0.25F);
  EXPECT_EQ(spec.optimizer.initial_accumulator, 2.0F);
  EXPECT_EQ(spec.optimizer.ftrl_beta, 3.0F);
  EXPECT_EQ(spec.optimizer.ftrl_l1, 4.0F);
  EXPECT_EQ(spec.optimizer.ftrl_l2, 5.0F);
  EXPECT_EQ(spec.schedule.warmup_steps, 9);
  EXPECT_EQ(spec.init.type, table::InitType::kNormal);
  EXPECT_EQ(spec.init.scale, 0.125F);
  EXPECT_EQ(spec.weights, FloatType::kFp16);
  EXPECT_EQ(spec.limits.capacity_rows, 7);
  EXPECT_EQ(spec.limits.ttl_steps, 9);
  EXPECT_EQ(spec.limits.admit_after, 3);
  for (const auto& [name, type] :
       {std::pair{"sgd", RowOptimizerType::kSgd}, std::pair{"adagrad", RowOptimizerType::kAdagrad},
        std::pair{"rowwise_adagrad", RowOptimizerType::kRowwiseAdagrad},
        std::pair{"adam", RowOptimizerType::kAdam}}) {
    TableConfig other;
    load_config_text(other, concat("optimizer: ", name), "job.yaml");
    EXPECT_EQ(resolve_specs({{"default", other}}, {}, kSchema, 0).tables[0].optimizer.type, type);
  }
}

TEST(ResolveSpecs, RefusesAFeatureThatTheSchemaLacks) {
  EXPECT_EQ(resolve_error({}, {{"default", {}}, {"itm", {}}}),
            "features.itm: the schema has no feature 'itm'; did you mean 'item'?");
}

TEST(ResolveSpecs, RefusesATableThatNoFeatureUses) {
  EXPECT_EQ(resolve_error({{"default", {}}, {"usr", {}}}, {}),
            "tables.usr: no feature uses this table; did you mean 'user'?");
  EXPECT_THAT(resolve_error({{"item", {}}}, {{"item", {.table = "things"}}}),
              StartsWith("tables.item: no feature uses this table"));
}

TEST(ResolveSpecs, RefusesASequenceOfUnlimitedLength) {
  EXPECT_EQ(
      resolve_error({}, {{"item", {.pooling = Pooling::kSequence}}}),
      "features.item.pooling: sequence needs max_length for feature 'item' in the schema; a cross "
      "or a part of a time cannot be one");
  EXPECT_THAT(resolve_error({}, {{"default", {.pooling = Pooling::kSequence}}}),
              StartsWith("features.default.pooling: "));
}

TEST(ResolveSpecs, RefusesTheNameDefault) {
  EXPECT_THAT(resolve_error({}, {{"item", {.table = "default"}}}),
              StartsWith("features.item.table: 'default'"));
  EXPECT_THAT(refusal_of([] { resolve_specs({}, {}, {{.name = "default", .max_length = 0}}, 0); }),
              HasSubstr("rename it in the schema"));
}

TEST(ResolveSpecs, RefusesTooManyTables) {
  std::vector<data::SchemaFeature> schema;
  for (int i = 0; i < kMaxTables; ++i) schema.push_back({.name = concat("f", i), .max_length = 0});
  EXPECT_EQ(resolve_specs({}, {}, schema, 0).tables.size(), static_cast<std::size_t>(kMaxTables));
  schema.push_back({.name = "one more", .max_length = 0});
  EXPECT_THAT(refusal_of([&] { resolve_specs({}, {}, schema, 0); }),
              HasSubstr("at most 1024 tables, got 1025"));
  EXPECT_EQ(resolve_specs({}, {{"default", {.table = "all"}}}, schema, 0).tables.size(), 1U);
}

TEST(TableConfig, OptionsThatTheOptimizerDoesNotUseMustNotBeSet) {
  TableConfig config;
  config.optimizer.beta1 = 0.5;
  EXPECT_EQ(refusal_of([&] { config.validate("tables.user"); }),
            "tables.user.optimizer.beta1: not used by type 'adagrad' (only by adam): leave it out");
  config.optimizer.type = RowOptimizerType::kAdam;
  EXPECT_EQ(refusal_of([&] { config.validate("tables.user"); }), "no error");

  // A table that changes only the type still has the options of `default`, which were valid there.
  TableConfig user = config;
  user.optimizer.type = RowOptimizerType::kSgd;
  EXPECT_EQ(refusal_of([&] { user.validate("tables.user", config); }), "no error");
  user.optimizer.beta2 = 0.5;
  EXPECT_THAT(refusal_of([&] { user.validate("tables.user", config); }),
              StartsWith("tables.user.optimizer.beta2: not used by type 'sgd'"));
  EXPECT_THAT(refusal_of([&] { user.validate("tables.default", user); }),
              StartsWith("tables.default.optimizer.beta1"))
      << "its own fallback is none";
}

TEST(TableConfig, ChecksWhatNoSingleFieldCan) {
  TableConfig config;
  config.init.scale = -1;
  EXPECT_THAT(refusal_of([&] { config.validate("t"); }), StartsWith("t.init.scale: "));
  config.init.type = table::InitType::kConstant;
  EXPECT_EQ(refusal_of([&] { config.validate("t"); }), "no error");
  config.optimizer.schedule.decay = RateDecay::kLinear;
  EXPECT_THAT(refusal_of([&] { config.validate("t"); }), StartsWith("t.optimizer.schedule"));
  config.optimizer = {.type = RowOptimizerType::kFtrl, .beta = 0};
  EXPECT_THAT(refusal_of([&] { config.validate("t"); }), StartsWith("t.optimizer.beta: "));

  TableConfig admission;
  admission.admit_after = 2;
  EXPECT_THAT(refusal_of([&] { admission.validate("tables.user"); }),
              HasSubstr("tables.user.admit_after: 2 needs capacity_rows or ttl_steps"));
  admission.ttl_steps = 100;
  admission.validate("tables.user");
}

struct Root {
  std::map<std::string, TableConfig> tables;
  std::map<std::string, FeatureConfig> features;
  void visit(ConfigVisitor& v) {
    v.named("tables", tables, "Tables.");
    v.named("features", features, "Features.");
  }
};

TEST(EmbeddingConfig, LoadsFromYamlAndInheritsFromDefault) {
  const std::string path = testing::TempDir() + "embedding_config_test.yaml";
  std::ofstream(path) << "tables:\n"
                         "  default: {dim: 32, optimizer: {type: adam, lr: 0.5}}\n"
                         "  user: {init: {type: normal, scale: 1}}\n"
                         "features: {item: {pooling: mean}}\n";
  Root root;
  load_config(root, path);
  EXPECT_EQ(root.tables.at("user").dim, 32);
  EXPECT_EQ(root.tables.at("user").optimizer.lr, 0.5);
  EXPECT_EQ(root.tables.at("user").init.type, table::InitType::kNormal);
  EXPECT_EQ(root.features.at("item").pooling, Pooling::kMean);
  EXPECT_EQ(root.features.at("item").table, "own");

  EXPECT_THAT(refusal_of([&] { load_config(root, path, {"tables.user.optimizer.type=adagard"}); }),
              HasSubstr("adagrad"));
}

}  // namespace
}  // namespace satrap::job
