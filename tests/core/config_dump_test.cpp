#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/config.h"
#include "tests/core/config_fixture.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(Config, DumpReadsBackTheSame) {
  JobConfig config;
  config.run_dir = "a: b #\"c\"\\\n";
  config.schema.separator = "\x01";
  config.schema.columns = {{"true", "id"}, {"12", "number"}, {"", "id"}};
  config.weights = {0.1, 1.0 / 3, 1e-300};
  config.tables["user 1"] = {8, {OptimizerType::kSgd, 1e-7}};
  config.tables["default"];
  config.train.staleness = INT64_MAX;
  EXPECT_EQ(load(dump_config(config)), config);
  config.schema_preset = "criteo";
  config.schema = {};
  EXPECT_EQ(load(dump_config(config)), config);
}

TEST_F(Config, DumpOfRandomStringsAndNumbersReadsBackTheSame) {
  const RandomStream random{hash64(17)};
  std::uint64_t n = 0;
  const auto random_string = [&] {
    static const std::string alphabet = " \t\n:#-?,[]{}&*!|>'\"%@`~\\ab1.e+=<\x7f\xc3\xa9";
    std::string text;
    for (std::uint64_t length = random.below(n++, 6); length > 0; --length) {
      const char c = alphabet[random.below(n++, alphabet.size() - 2)];
      text += c;
    }
    if (random.below(n++, 4) == 0) text += "\xc3\xa9";
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    JobConfig config;
    config.run_dir = random_string();
    config.paths = {random_string(), random_string()};
    config.schema.columns = {{random_string(), "id"}};
    config.tables[random_string() + "x"].dim = 3;
    config.tables["default"];
    config.weights = {random.uniform_double(n++), 1e-20 * random.uniform_double(n++)};
    ASSERT_EQ(load(dump_config(config)), config) << dump_config(config);
  }
}

TEST(DumpConfig, LooksLikeAHandWrittenFile) {
  JobConfig config;
  config.schema.columns = {{"age", "number"}};
  EXPECT_EQ(dump_config(config),
            "run_dir: runs/job\n"
            "seed: 1\n"
            "schema:\n"
            "  separator: \"\\x09\"\n"
            "  columns:\n"
            "    - name: age\n"
            "      kind: number\n"
            "layers: [512, 256]\n"
            "weights: []\n"
            "paths: []\n"
            "tables:\n"
            "  default:\n"
            "    dim: 16\n"
            "    optimizer:\n"
            "      type: adagrad\n"
            "      lr: 0.02\n"
            "train:\n"
            "  mode: sync\n"
            "  staleness: 4\n"
            "  deterministic: false\n");
}

TEST(ExplainConfig, OfAFieldStatesTypeDefaultRuleAndDoc) {
  EXPECT_EQ(explain_config<JobConfig>("train.mode"),
            "train.mode (string, default sync, one of: sync, hybrid, async)\n"
            "    Training mode.\n");
  EXPECT_EQ(explain_config<JobConfig>("layers"),
            "layers (list of integers, default [512, 256], >= 1)\n"
            "    Layer sizes.\n");
}

TEST(ExplainConfig, EntriesAndElementsMayBeNamedStarredOrLeftOut) {
  const std::string text =
      "tables.*.dim (integer, default 16, >= 1, <= 4096)\n"
      "    Length of a row's vector.\n";
  EXPECT_EQ(explain_config<JobConfig>("tables.*.dim"), text);
  EXPECT_EQ(explain_config<JobConfig>("tables.user.dim"), text);
  EXPECT_EQ(explain_config<JobConfig>("tables.dim"), text);
  EXPECT_EQ(explain_config<JobConfig>("schema.columns.0.name"),
            "schema.columns.*.name (string, required)\n    Name of the column.\n");
}

TEST(ExplainConfig, OfASectionListsEverythingInIt) {
  EXPECT_EQ(explain_config<JobConfig>("tables.default.optimizer"),
            "tables.*.optimizer (section, or its type)\n"
            "    How rows are trained.\n"
            "tables.*.optimizer.type (string, default adagrad, one of: sgd, adagrad)\n"
            "    Row optimizer.\n"
            "tables.*.optimizer.lr (number, default 0.02, > 0)\n"
            "    Learning rate.\n");
  const std::string everything = explain_config<JobConfig>("");
  EXPECT_THAT(everything, StartsWith("run_dir (string, default runs/job)\n"));
  EXPECT_THAT(everything, HasSubstr("schema (name of a preset or section)\n"));
  EXPECT_THAT(everything, HasSubstr("\ntrain.deterministic (true or false, default false)\n"));
}

TEST(ExplainConfig, OfAnUnknownKeySuggestsTheNearest) {
  const auto message = [](const std::string& key) -> std::string {
    try {
      explain_config<JobConfig>(key);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("train.mod"), "train.mod: unknown key; did you mean train.mode?");
  EXPECT_EQ(message("tables.user.dimm"),
            "tables.user.dimm: unknown key; did you mean tables.user.dim?");
  EXPECT_EQ(message("whatever"), "whatever: unknown key");
}

struct ListOfDefaults {
  std::vector<ColumnConfig> columns = {{"a", "number"}, {"b", "number"}};
  void visit(ConfigVisitor& v) { v.list("columns", columns, "Columns."); }
};

TEST_F(Config, AListInTheFileReplacesTheDefaultOne) {
  ListOfDefaults config;
  load_config(config, write("columns: [{name: x}]\n"));
  EXPECT_THAT(config.columns, ElementsAre(ColumnConfig{"x", "id"}));
  load_config(config, write("columns: []\n"));
  EXPECT_THAT(config.columns, IsEmpty());
}

TEST_F(Config, AnOverrideMayChangeAnElementOfTheDefaultList) {
  ListOfDefaults config;
  load_config(config, "", {"columns.1.name=c"});
  EXPECT_THAT(config.columns,
              ElementsAre(ColumnConfig{"a", "number"}, ColumnConfig{"c", "number"}));
  EXPECT_THROW(load_config(config, "", {"columns.2.name=c"}), Error);
}

TEST(ExplainConfig, DocumentsAFreshElementNotTheDefaultOnes) {
  EXPECT_EQ(explain_config<ListOfDefaults>("columns.kind"),
            "columns.*.kind (string, default id, one of: id, number)\n    What it holds.\n");
}

struct NamedColumns {
  std::map<std::string, ColumnConfig> columns;
  void visit(ConfigVisitor& v) { v.named("columns", columns, "Columns."); }
};

TEST_F(Config, DefaultMayHoldWhatIsRequiredOfTheEntries) {
  NamedColumns config;
  load_config(config, write(""));
  load_config(config, write("columns: {default: {name: x}, a: {kind: number}}\n"));
  EXPECT_EQ(config.columns.at("a"), (ColumnConfig{"x", "number"}));
  try {
    load_config(config, write("columns:\n  default: {kind: id}\n  b: {kind: number}\n"));
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(without_directory(error.what()),
              "train.yaml:3: columns.b.name: required, but missing");
  }
}

TEST(ConfigValues, AreListedByTheirPaths) {
  using Values = std::vector<ConfigValue>;
  EXPECT_EQ(
      config_values("a: 1\nb:\n  c: [x, \"y z\"]\n  d: []\ne:\n  - f: 2\n  - f: ~\n", "x"),
      (Values{{"a", "1"}, {"b.c", "[x, y z]"}, {"b.d", "[]"}, {"e.0.f", "2"}, {"e.1.f", ""}}));
  EXPECT_EQ(config_values("", "x"), Values{});
  EXPECT_THROW(config_values("a: [1", "x"), Error);
}

TEST(ConfigValues, OfADumpAreAllOfIt) {
  JobConfig config;
  config.schema.columns = {{"age", "number"}};
  config.tables["user"].dim = 8;
  std::vector<std::string> lines;
  for (const ConfigValue& value : config_values(dump_config(config), "x")) {
    lines.push_back(value.path + ": " + value.text);
  }
  EXPECT_THAT(
      lines, ElementsAre("run_dir: runs/job", "seed: 1", "schema.separator: \t",
                         "schema.columns.0.name: age", "schema.columns.0.kind: number",
                         "layers: [512, 256]", "weights: []", "paths: []", "tables.default.dim: 16",
                         "tables.default.optimizer.type: adagrad",
                         "tables.default.optimizer.lr: 0.02", "tables.user.dim: 8",
                         "tables.user.optimizer.type: adagrad", "tables.user.optimizer.lr: 0.02",
                         "train.mode: sync", "train.staleness: 4", "train.deterministic: false"));
}

TEST(ConfigValues, APresetIsOneValue) {
  JobConfig config;
  config.schema_preset = "criteo";
  EXPECT_EQ(config_values(dump_config(config), "x")[2], (ConfigValue{"schema", "criteo"}));
}

TEST(Nearest, FindsTyposAndAbbreviationsOnly) {
  const std::vector<std::string> known = {"batch_size", "optimizer", "lr", "epochs"};
  EXPECT_EQ(nearest("batchsize", known), "batch_size");
  EXPECT_EQ(nearest("optimzier", known), "optimizer");
  EXPECT_EQ(nearest("rl", known), "lr");
  EXPECT_EQ(nearest("LR", known), "lr");
  EXPECT_EQ(nearest("optim", known), "optimizer");
  EXPECT_EQ(nearest("colour", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace satrap
