#include "satrap/core/config.h"

#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/core/config_fixture.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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
  EXPECT_EQ(config.train.mode, Mode::kHybrid);
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
  EXPECT_EQ(config.tables.at("default"), (TableConfig{8, {OptimizerType::kSgd, 0.02}}));
  EXPECT_EQ(config.tables.at("user"), (TableConfig{8, {OptimizerType::kSgd, 0.5}}));
  EXPECT_EQ(config.tables.at("item"), (TableConfig{8, {OptimizerType::kSgd, 0.02}}));
}

TEST_F(Config, ATextMayStandForASection) {
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
  EXPECT_EQ(config.tables.at("user"), (TableConfig{4, {OptimizerType::kAdagrad, 1e-3}}));
  EXPECT_EQ(config.tables.at("item").dim, 5);
  EXPECT_THAT(config.paths, ElementsAre("a", "b c"));
  EXPECT_EQ(config.train.staleness, 1);
  EXPECT_EQ(config.train.mode, Mode::kHybrid);
}

TEST_F(Config, OverrideReplacesWhatIsWritten) {
  const JobConfig config = load("train: {mode: hybrid, staleness: 2}\nlayers: [1, 2, 3]\n",
                                {"train={staleness: 7}", "layers=[9]"});
  EXPECT_EQ(config.train.mode, Mode::kSync);  // the default
  EXPECT_EQ(config.train.staleness, 7);
  EXPECT_THAT(config.layers, ElementsAre(9));
}

TEST_F(Config, OverrideTakesBackWhatIsWritten) {
  const JobConfig config =
      load("seed: 2\ntrain: {mode: hybrid, staleness: 2}\ntables: {user: {dim: 4}}\n",
           {"~train.mode", "~tables", "seed=3", "~seed", "layers=[9]", "~layers", "layers=[8]"});
  EXPECT_EQ(config.train.mode, Mode::kSync);
  EXPECT_EQ(config.train.staleness, 2);
  EXPECT_FALSE(config.tables.contains("user"));
  EXPECT_EQ(config.seed, 1);
  EXPECT_THAT(config.layers, ElementsAre(8));
  EXPECT_EQ(problem("seed: 1\n", {"~train.mode"}),
            "command line: ~train.mode: nothing has been written that it takes back");
  EXPECT_EQ(problem("", {"~"}), "command line: ~: expected key.path=value or ~key.path");
}

TEST_F(Config, APlainValueMeansOneFieldOfItsSection) {
  const JobConfig config = load(
      "schema: {columns: [a, {name: b, kind: number}]}\n"
      "tables: {default: {optimizer: sgd}, user: {optimizer: adagrad}, item: {dim: 4}}\n");
  EXPECT_EQ(config.schema.columns, (std::vector<ColumnConfig>{{"a", "id"}, {"b", "number"}}));
  EXPECT_EQ(config.tables.at("user").optimizer.type, OptimizerType::kAdagrad);
  EXPECT_EQ(config.tables.at("item").optimizer.type, OptimizerType::kSgd);
}

TEST_F(Config, AnOverrideSetsFieldsBesideAPlainValue) {
  const std::string yaml = "schema: {columns: [a, b]}\ntables: {user: {optimizer: sgd}}\n";
  const JobConfig config =
      load(yaml, {"tables.user.optimizer.lr=1", "schema.columns.1.kind=number"});
  EXPECT_EQ(config.tables.at("user").optimizer, (OptimizerConfig{OptimizerType::kSgd, 1.0}));
  EXPECT_EQ(config.schema.columns, (std::vector<ColumnConfig>{{"a", "id"}, {"b", "number"}}));
  EXPECT_EQ(load(yaml, {"tables.user.optimizer.type=adagrad"}).tables.at("user").optimizer.type,
            OptimizerType::kAdagrad);
  EXPECT_EQ(load(yaml, {"tables.user.optimizer=adagrad"}).tables.at("user").optimizer.type,
            OptimizerType::kAdagrad);
}

TEST_F(Config, APlainValueIsCheckedAsTheFieldThatItMeans) {
  EXPECT_EQ(problem("tables: {user: {optimizer: sdg}}\n"),
            "train.yaml:1: tables.user.optimizer.type: must be one of: sgd, adagrad; got \"sdg\"; "
            "did you mean sgd?");
  EXPECT_EQ(problem("tables: {user: {optimizer: [sgd]}}\n"),
            "train.yaml:1: tables.user.optimizer.type: expected a string, got a list");
  EXPECT_EQ(problem("train: hybrid\n"), "train.yaml:1: train: expected a section, got \"hybrid\"");
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
  EXPECT_EQ(problem("seed: 1\n---\nseed: 2\n"),
            "train.yaml:2: one YAML document expected, here begins another");
  EXPECT_EQ(problem("seed: 1\n---\n---\n"),
            "train.yaml:2: one YAML document expected, here begins another");
  for (const char* endless : {",\n", "}, {a: 1}\n", "a: 1\n, b\n", "a: 1}\n, {b: 1}\n"}) {
    EXPECT_THAT(problem(endless), StartsWith("train.yaml:")) << endless;
  }
  EXPECT_EQ(problem(",\n"), "train.yaml:1: not valid YAML: a ',' that is in no list");
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

TEST_F(Config, AFileWithoutEndIsRefused) {
  JobConfig config;
  try {
    load_config(config, "/dev/zero");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_STREQ(error.what(), "/dev/zero: longer than a configuration may be, 16.0MiB");
  }
}

TEST_F(Config, APipeIsRead) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "seed: 7\n" << std::string(100'000, '#'); });
  JobConfig config;
  load_config(config, path);
  EXPECT_EQ(config.seed, 7);
  writer.join();
}

TEST_F(Config, AValueAddsNoProblemAndNoControlCharacters) {
  EXPECT_THAT(problem("seed: \"x\\n\\e[2Jforged\"\n"), HasSubstr("got \"x\\x0a\\x1b[2Jforged\""));
  EXPECT_THAT(problem("", {"seed=x\nforged"}), StartsWith("command line: seed=x\\x0aforged: "));
}

TEST_F(Config, ASelfReferringAliasIsRefused) {
  EXPECT_THAT(problem("layers: &a [*a]\n"), HasSubstr("train.yaml:1: "));
}

TEST_F(Config, OverridesThatFitNowhereAreRefused) {
  EXPECT_EQ(problem("", {"seed"}), "command line: seed: expected key.path=value or ~key.path");
  EXPECT_EQ(problem("", {"a..b=1"}), "command line: a..b=1: expected key.path=value or ~key.path");
  EXPECT_EQ(problem("", {"=1"}), "command line: =1: expected key.path=value or ~key.path");
  EXPECT_EQ(problem("layers: [1]\n", {"layers.1=2"}),
            "command line: layers.1=2: layers: a list of 1 (train.yaml:1) has no element 1");
  EXPECT_EQ(problem("seed: 1\n", {"seed.x=2"}),
            "command line: seed.x=2: seed: is the value \"1\" (train.yaml:1), so x cannot be set "
            "in it");
  EXPECT_THAT(problem("", {"layers=[1"}), StartsWith("command line: layers=[1: not valid YAML"));
}

}  // namespace
}  // namespace satrap
