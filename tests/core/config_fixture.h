#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "tests/support/temporary_directory.h"

namespace satrap {

enum class OptimizerType { kSgd, kAdagrad };
inline constexpr Choice<OptimizerType> kOptimizerTypes[] = {{"sgd", OptimizerType::kSgd},
                                                            {"adagrad", OptimizerType::kAdagrad}};

struct OptimizerConfig {
  static constexpr std::string_view kPlain = "type";

  OptimizerType type = OptimizerType::kAdagrad;
  double lr = 0.02;
  bool operator==(const OptimizerConfig&) const = default;
  void visit(ConfigVisitor& v) {
    v.choice("type", type, kOptimizerTypes, "Row optimizer.");
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
  static constexpr std::string_view kPlain = "name";

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

enum class Mode { kSync, kHybrid, kAsync };
inline constexpr Choice<Mode> kModes[] = {{"sync", Mode::kSync},
                                          {"hybrid", Mode::kHybrid},
                                          {"async", Mode::kAsync}};

struct TrainConfig {
  Mode mode = Mode::kSync;
  std::int64_t staleness = 4;
  bool deterministic = false;
  bool operator==(const TrainConfig&) const = default;
  void visit(ConfigVisitor& v) {
    v.choice("mode", mode, kModes, "Training mode.");
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
    v.section("schema", schema, "What a row of the data is.", {}, &schema_preset);
    v.field("layers", layers, "Layer sizes.", {.min = 1});
    v.field("weights", weights, "Weights.", {.min = 0, .max = 1});
    v.field("paths", paths, "Files.");
    v.named("tables", tables, "Embedding tables.");
    v.section("train", train, "The trainer.");
  }
};

// A file that exists for one test, named train.yaml in the messages.
class Config : public ::testing::Test {
 protected:
  JobConfig load(const std::string& text, const std::vector<std::string>& overrides = {}) {
    JobConfig config;
    origins_ = load_config(config, write(text), overrides);
    return config;
  }

  // The message for a config that must be refused, without the folder of the file.
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

}  // namespace satrap
