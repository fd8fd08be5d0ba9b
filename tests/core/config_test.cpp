#include "satrap/core/config.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "tests/support/temporary_directory.h"

namespace satrap {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct OptimizerConfig {
  std::string type = "adagrad";
  double lr = 0.02;
  bool operator==(const OptimizerConfig&) const = default;
  void visit(ConfigVisitor& v) {
    v.field("type", type, "Row optimizer.", {.one_of = {"sgd", "adagrad"}});
    v.field("lr", lr, "Learning rate.", {.min = 0, .min_exclusive = true});
  }
};

struct TableConfig {
  std::int64_t dim = 16;
  OptimizerConfig optimizer;
  bool operator==(const TableConfig&) const = default;
  void visit(ConfigVisitor& v) {
    v.field("dim", dim, "Length of a row's vector.", {.min = 1, .max = 4096});
    v.section("optimizer", optimizer, "How rows are trained.");
  }
};

struct ColumnConfig {
  std::string name;
  std::string kind = "id";
  bool operator==(const ColumnConfig&) const = default;
  void visit(ConfigVisitor& v) {
    v.field("name", name, "Name of the column.", {.required = true});
    v.field("kind", kind, "What it holds.", {.one_of = {"id", "number"}});
  }
};

struct SchemaConfig {
  std::string separator = "\t";
  std::vector<ColumnConfig> columns;
  bool operator==(const SchemaConfig&) const = default;
  void visit(ConfigVisitor& v) {
    v.field("separator", separator, "Between columns.");
    v.list("columns", columns, "The columns.");
  }
};

struct TrainConfig {
  std::string mode = "sync";
  std::int64_t staleness = 4;
  bool deterministic = false;
  bool operator==(const TrainConfig&) const = default;
  void visit(ConfigVisitor& v) {
    v.field("mode", mode, "Training mode.", {.one_of = {"sync", "hybrid", "async"}});
    v.field("staleness", staleness, "Steps a lookup may lag behind.", {.min = 0});
    v.field("deterministic", deterministic, "Same bits every time.");
  }
};

struct JobConfig {
  std::string run_dir = "runs/job";
  std::int64_t seed = 1;
  std::string schema_preset;
  SchemaConfig schema;
  std::vector<std::int64_t> layers = {512, 256};
  std::vector<double> weights;
  std::vector<std::string> paths;
  std::map<std::string, TableConfig> tables;
  TrainConfig train;
  bool operator==(const JobConfig&) const = default;
  void visit(ConfigVisitor& v) {
    v.field("run_dir", run_dir, "Where results go.");
    v.field("seed", seed, "Seed of everything random.");
    v.section_or_preset("schema", schema_preset, schema, "What a row of the data is.");
    v.field("layers", layers, "Layer sizes.", {.min = 1});
    v.field("weights", weights, "Weights.", {.min = 0, .max = 1});
    v.field("paths", paths, "Files.");
    v.named("tables", tables, "Embedding tables.");
    v.section("train", train, "The trainer.");
  }
};

// A file that is there for one test, named train.yaml in the messages.
class Config : public ::testing::Test {
 protected:
  JobConfig load(const std::string& text, const std::vector<std::string>& overrides = {}) {
    JobConfig config;
    origins_ = load_config(config, write(text), overrides);
    return config;
  }

  // The message of a config that must be refused, without the folder of the file.
  std::string problem(const std::string& text, const std::vector<std::string>& overrides = {}) {
    try {
      load(text, overrides);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return without_directory(error.what());
    }
    ADD_FAILURE() << "was accepted:\n" << text;
    return "";
  }

  std::string write(const std::string& text) {
    const std::string path = directory_.path() + "/train.yaml";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string without_directory(std::string text) const {
    const std::string prefix = directory_.path() + "/";
    for (std::size_t at; (at = text.find(prefix)) != std::string::npos;) {
      text.erase(at, prefix.size());
    }
    return text;
  }

  ConfigOrigins origins_;

 private:
  TemporaryDirectory directory_;
};

TEST_F(Config, EmptyFileMeansDefaults) {
  JobConfig defaults;
  defaults.tables["default"];  // always present
  EXPECT_EQ(load(""), defaults);
  EXPECT_EQ(load("# only a comment\n"), defaults);
  EXPECT_EQ(load("train:\ntables:\nschema:\n"), defaults);
}

TEST_F(Config, NoFileMeansOverridesOnly) {
  JobConfig config;
  load_config(config, "", {"seed=7"});
  EXPECT_EQ(config.seed, 7);
}

TEST_F(Config, ReadsEveryKindOfField) {
  const JobConfig config = load(
      "run_dir: 'runs/a b'\n"
      "seed: -3\n"
      "layers: [8, 4]\n"
      "weights:\n  - 0.5\n  - 1\n"
      "paths: day.tsv\n"
      "train: {mode: hybrid, deterministic: true}\n");
  EXPECT_EQ(config.run_dir, "runs/a b");
  EXPECT_EQ(config.seed, -3);
  EXPECT_THAT(config.layers, ElementsAre(8, 4));
  EXPECT_THAT(config.weights, ElementsAre(0.5, 1.0));
  EXPECT_THAT(config.paths, ElementsAre("day.tsv"));
  EXPECT_EQ(config.train.mode, "hybrid");
  EXPECT_TRUE(config.train.deterministic);
  EXPECT_EQ(config.train.staleness, 4);
}

TEST_F(Config, StringFieldTakesAnyScalar) {
  EXPECT_EQ(load("run_dir: 12\n").run_dir, "12");
  EXPECT_EQ(load("run_dir: true\n").run_dir, "true");
  EXPECT_EQ(load("run_dir: \"\"\n").run_dir, "");
}

TEST_F(Config, EntriesStartAsCopiesOfDefault) {
  const JobConfig config = load(
      "tables:\n"
      "  user: {optimizer: {lr: 0.5}}\n"
      "  default: {dim: 8, optimizer: {type: sgd}}\n"
      "  item:\n");
  ASSERT_EQ(config.tables.size(), 3u);
  EXPECT_EQ(config.tables.at("default"), (TableConfig{8, {"sgd", 0.02}}));
  EXPECT_EQ(config.tables.at("user"), (TableConfig{8, {"sgd", 0.5}}));
  EXPECT_EQ(config.tables.at("item"), (TableConfig{8, {"sgd", 0.02}}));
}

TEST_F(Config, SectionOrPresetTakesBothForms) {
  const JobConfig preset = load("schema: criteo\n");
  EXPECT_EQ(preset.schema_preset, "criteo");
  const JobConfig section = load("schema: {columns: [{name: a}, {name: b, kind: number}]}\n");
  EXPECT_EQ(section.schema_preset, "");
  EXPECT_THAT(section.schema.columns,
              ElementsAre(ColumnConfig{"a", "id"}, ColumnConfig{"b", "number"}));
}

TEST_F(Config, OriginsNameTheLineOfEachValueWritten) {
  load("seed: 2\ntrain:\n  mode: hybrid\n", {"train.staleness=9"});
  EXPECT_EQ(without_directory(origins_.at("seed")), "train.yaml:1");
  EXPECT_EQ(without_directory(origins_.at("train")), "train.yaml:2");
  EXPECT_EQ(without_directory(origins_.at("train.mode")), "train.yaml:3");
  EXPECT_EQ(origins_.at("train.staleness"), "command line: train.staleness=9");
  EXPECT_FALSE(origins_.contains("run_dir"));
}

TEST_F(Config, OverridesWinOverTheFile) {
  const JobConfig config =
      load("seed: 2\nlayers: [1, 2, 3]\ntables: {user: {dim: 4}}\n",
           {"seed=3", "layers.1=20", "tables.user.optimizer.lr=1e-3", "tables.item.dim=5",
            "paths=[a, 'b c']", "train={staleness: 1}", "train.mode=hybrid"});
  EXPECT_EQ(config.seed, 3);
  EXPECT_THAT(config.layers, ElementsAre(1, 20, 3));
  EXPECT_EQ(config.tables.at("user"), (TableConfig{4, {"adagrad", 1e-3}}));
  EXPECT_EQ(config.tables.at("item").dim, 5);
  EXPECT_THAT(config.paths, ElementsAre("a", "b c"));
  EXPECT_EQ(config.train.staleness, 1);
  EXPECT_EQ(config.train.mode, "hybrid");
}

TEST_F(Config, OverrideOfAMappingMergesAndOfAListReplaces) {
  const JobConfig config = load("train: {mode: hybrid, staleness: 2}\nlayers: [1, 2, 3]\n",
                                {"train={staleness: 7}", "layers=[9]"});
  EXPECT_EQ(config.train.mode, "hybrid");
  EXPECT_EQ(config.train.staleness, 7);
  EXPECT_THAT(config.layers, ElementsAre(9));
}

TEST_F(Config, OverrideMayReplaceAPreset) {
  EXPECT_EQ(load("schema: criteo\n", {"schema={separator: ','}"}).schema.separator, ",");
  EXPECT_EQ(load("schema: {separator: ','}\n", {"schema=criteo"}).schema_preset, "criteo");
}

TEST_F(Config, OverrideValueIsPlainTextUnlessItLooksLikeYaml) {
  EXPECT_EQ(load("", {"run_dir=*.gz"}).run_dir, "*.gz");
  EXPECT_EQ(load("", {"run_dir=-"}).run_dir, "-");
  EXPECT_EQ(load("", {"run_dir="}).run_dir, "");
  EXPECT_EQ(load("", {"run_dir=a=b: #c"}).run_dir, "a=b: #c");
  EXPECT_EQ(load("", {"run_dir=\"a\\tb\""}).run_dir, "a\tb");
}

TEST_F(Config, WrongTypesNamePlaceKeyAndValue) {
  EXPECT_EQ(problem("seed: 1\ntrain:\n  staleness: four\n"),
            "train.yaml:3: train.staleness: expected an integer, got \"four\"");
  EXPECT_EQ(problem("seed: 1e6\n"), "train.yaml:1: seed: expected an integer, got \"1e6\"");
  EXPECT_EQ(problem("seed: 1_000\n"), "train.yaml:1: seed: expected an integer, got \"1_000\"");
  EXPECT_EQ(problem("seed: '4'\n"), "train.yaml:1: seed: expected an integer, got \"4\"");
  EXPECT_EQ(problem("seed: 99999999999999999999\n"),
            "train.yaml:1: seed: expected an integer, got \"99999999999999999999\", which does not "
            "fit into 64 bits");
  EXPECT_EQ(problem("seed:\n"), "train.yaml:1: seed: expected an integer, got nothing");
  EXPECT_EQ(problem("train: {deterministic: yes}\n"),
            "train.yaml:1: train.deterministic: expected true or false, got \"yes\"");
  EXPECT_EQ(problem("run_dir: [a]\n"), "train.yaml:1: run_dir: expected a string, got a list");
  EXPECT_EQ(problem("train: sync\n"), "train.yaml:1: train: expected a section, got \"sync\"");
  EXPECT_EQ(problem("layers: {a: 1}\n"), "train.yaml:1: layers: expected a list, got a section");
  EXPECT_EQ(problem("layers:\n- 1\n- x\n"),
            "train.yaml:3: layers.1: expected an integer, got \"x\"");
  EXPECT_EQ(problem("schema: {columns: 3}\n"),
            "train.yaml:1: schema.columns: expected a list, got \"3\"");
  EXPECT_EQ(problem("tables: [a]\n"),
            "train.yaml:1: tables: expected a section of named entries, got a list");
  EXPECT_EQ(problem("tables: {user: 8}\n"),
            "train.yaml:1: tables.user: expected a section, got \"8\"");
}

TEST_F(Config, NumbersMustBeFinite) {
  for (const std::string value : {"nan", "inf", "-inf", "1e999"}) {
    EXPECT_EQ(problem("tables: {default: {optimizer: {lr: " + value + "}}}\n"),
              "train.yaml:1: tables.default.optimizer.lr: expected a finite number, got \"" +
                  value + "\"");
  }
  EXPECT_THAT(problem("weights: .nan\n"), HasSubstr("expected a number, got \".nan\""));
}

TEST_F(Config, RulesAreStatedWhenBroken) {
  EXPECT_EQ(problem("train:\n  mode: hybird\n"),
            "train.yaml:2: train.mode: must be one of: sync, hybrid, async; got \"hybird\"; "
            "did you mean hybrid?");
  EXPECT_EQ(problem("train: {staleness: -1}\n"),
            "train.yaml:1: train.staleness: must be >= 0, got -1");
  EXPECT_EQ(problem("tables: {user: {optimizer: {lr: 0}}}\n"),
            "train.yaml:1: tables.user.optimizer.lr: must be > 0, got 0");
  EXPECT_EQ(problem("weights: [0.5, 1.5]\n"),
            "train.yaml:1: weights.1: must be >= 0, <= 1, got 1.5");
}

TEST_F(Config, UnknownKeysComeWithTheNearestKnownOne) {
  EXPECT_EQ(problem("train:\n  stalenes: 4\n"),
            "train.yaml:2: train.stalenes: unknown key; did you mean train.staleness?");
  EXPECT_EQ(problem("tables: {user: {dimm: 4}}\n"),
            "train.yaml:1: tables.user.dimm: unknown key; did you mean tables.user.dim?");
  EXPECT_EQ(problem("staleness: 4\n"),
            "train.yaml:1: staleness: unknown key; did you mean train.staleness?");
  EXPECT_EQ(problem("train: {colour: red}\n"),
            "train.yaml:1: train.colour: unknown key; known here: mode staleness deterministic");
  EXPECT_EQ(problem("", {"train.mod=sync"}),
            "command line: train.mod=sync: train.mod: unknown key; did you mean train.mode?");
}

TEST_F(Config, DuplicateKeysAreRefused) {
  EXPECT_EQ(problem("seed: 1\ntrain: {}\nseed: 2\n"),
            "train.yaml:3: seed: duplicate key, first at train.yaml:1");
}

TEST_F(Config, RequiredValuesMustBeWritten) {
  EXPECT_EQ(problem("schema:\n  columns:\n    - name: a\n    - kind: id\n"),
            "train.yaml:4: schema.columns.1.name: required, but missing");
}

TEST_F(Config, AllProblemsAreReportedAtOnceFromTopToBottom) {
  EXPECT_EQ(problem("sed: 2\n"
                    "train:\n"
                    "  staleness: four\n"
                    "  mode: fast\n"
                    "layers: [0]\n",
                    {"run_dir=[]"}),
            "train.yaml:1: sed: unknown key; did you mean seed?\n"
            "train.yaml:3: train.staleness: expected an integer, got \"four\"\n"
            "train.yaml:4: train.mode: must be one of: sync, hybrid, async; got \"fast\"\n"
            "train.yaml:5: layers.0: must be >= 1, got 0\n"
            "command line: run_dir=[]: run_dir: expected a string, got a list");
}

TEST_F(Config, ARefusedFileLeavesTheConfigAlone) {
  JobConfig config;
  EXPECT_THROW(load_config(config, write("seed: 5\nlayers: x\n")), Error);
  EXPECT_EQ(config, JobConfig{});
}

TEST_F(Config, FilesThatAreNoConfigAreRefused) {
  EXPECT_THAT(problem("seed: 1\ntrain: {mode: sync\n"), StartsWith("train.yaml:3: not valid YAML"));
  EXPECT_THAT(problem("a: *x\n"), HasSubstr("needs quotes"));
  EXPECT_EQ(problem("- 1\n"), "train.yaml:1: expected lines of the form key: value");
  EXPECT_EQ(problem("seed: 1\n---\nseed: 2\n"), "train.yaml:3: one YAML document expected, got 2");
  EXPECT_EQ(problem("&a [1, *a]: 1\n").find("train.yaml:1: "), 0u);
  JobConfig config;
  try {
    load_config(config, "/nonexistent/train.yaml");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot read /nonexistent/train.yaml: No such file or directory");
  }
  EXPECT_THROW(load_config(config, "/"), Error);
}

TEST_F(Config, ASelfReferringAliasIsRefused) {
  EXPECT_THAT(problem("layers: &a [*a]\n"), HasSubstr("train.yaml:1: "));
}

TEST_F(Config, OverridesThatFitNowhereAreRefused) {
  EXPECT_EQ(problem("", {"seed"}), "command line: seed: expected key.path=value");
  EXPECT_EQ(problem("", {"a..b=1"}), "command line: a..b=1: expected key.path=value");
  EXPECT_EQ(problem("", {"=1"}), "command line: =1: expected key.path=value");
  EXPECT_EQ(problem("layers: [1]\n", {"layers.1=2"}),
            "command line: layers.1=2: layers: a list of 1 (train.yaml:1) has no element 1");
  EXPECT_EQ(problem("seed: 1\n", {"seed.x=2"}),
            "command line: seed.x=2: seed: is the value \"1\" (train.yaml:1), so x cannot be set "
            "in it");
  EXPECT_THAT(problem("", {"layers=[1"}), StartsWith("command line: layers=[1: not valid YAML"));
}

TEST_F(Config, DumpReadsBackTheSame) {
  JobConfig config;
  config.run_dir = "a: b #\"c\"\\\n";
  config.schema.separator = "\x01";
  config.schema.columns = {{"true", "id"}, {"12", "number"}, {"", "id"}};
  config.weights = {0.1, 1.0 / 3, 1e-300};
  config.tables["user 1"] = {8, {"sgd", 1e-7}};
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
            "tables.*.optimizer (section)\n"
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
