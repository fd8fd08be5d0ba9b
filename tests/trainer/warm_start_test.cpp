#include "satrap/checkpoint/warm_start.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/checkpoint/checkpoint_writer.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/trainer/trainer.h"
#include "tests/trainer/tiny_cluster.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

/// Rows of one table of a checkpoint: the id to the floats after the header.
using Rows = std::map<std::uint64_t, std::vector<float>>;

Rows rows_of(const std::string& checkpoint, const std::string& table) {
  const checkpoint::Manifest manifest = checkpoint::Manifest::read(checkpoint);
  Rows rows;
  for (const checkpoint::Manifest::Table& saved : manifest.tables) {
    if (saved.name != table) continue;
    for (const std::string& name : saved.files) {
      const std::string bytes = read_file(checkpoint + "/" + name);
      for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(saved.row_bytes)) {
        RowHeader header;
        std::memcpy(&header, bytes.data() + at, sizeof(header));
        std::vector<float> row(static_cast<std::size_t>(saved.row_bytes - 16) / sizeof(float));
        std::memcpy(row.data(), bytes.data() + at + 16, row.size() * sizeof(float));
        rows[mixed_id_of(header.key)] = row;
      }
    }
  }
  return rows;
}

/// A run of 10 steps with the tables C1 to C4 of dim 8, from which others start.
class WarmStartTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.train.max_steps = 10;
    from_ = train(config_, {}).last_checkpoint;
    config_.run_dir = directory_.path() + "/warm";
    config_.train.max_steps = 0;
    config_.train.warm_start.from = from_;
  }

  /// A checkpoint of the job before its first step.
  std::string start() {
    ThreadPool pool(1);
    pipeline::Cluster cluster(config_, {});
    pipeline::Model model(config_, data::resolve_schema(config_.data), cluster, pool);
    checkpoint::WarmStart(config_, from_, model).load(model);
    auto content = std::make_unique<checkpoint::CheckpointContent>();
    content->positions.resize(1);
    content->capture(model);
    checkpoint::CheckpointWriter writer(directory_.path() + "/started", 1);
    writer.start(std::move(content));
    writer.wait();
    return checkpoint::find_checkpoint(directory_.path() + "/started");
  }

  std::string error() {
    try {
      train(config_, {.overwrite = true});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig) << error.what();
      return error.what();
    }
    return "no error";
  }

  json summary() const { return json::parse(std::ifstream(config_.run_dir + "/summary.json")); }

  TemporaryDirectory directory_;
  job::JobConfig config_ = tiny_job(directory_.path() + "/first");
  std::string from_;
};

TEST_F(WarmStartTest, TakesRowsOptimizerStateAndDenseNetwork) {
  const std::string at = start();
  for (const char* table : {"C1", "C2", "C3", "C4"})
    EXPECT_EQ(rows_of(at, table), rows_of(from_, table));
  EXPECT_EQ(read_file(at + "/dense.bin"), read_file(from_ + "/dense.bin"));
}

TEST_F(WarmStartTest, BeginsAtStepZeroWithAllTheDataAndSaysWhereItCameFrom) {
  train(config_, {});
  EXPECT_EQ(summary()["step"], 40);
  EXPECT_EQ(summary()["examples"], 40 * 64);
  EXPECT_EQ(summary()["resumed"], false);
  EXPECT_EQ(summary()["warm_start"]["from"], from_);
  EXPECT_EQ(summary()["warm_start"]["tables"], json({"C1", "C2", "C3", "C4"}));
  EXPECT_GT(rows_of(checkpoint::list_checkpoints(config_.run_dir).back().path, "C3").size(),
            rows_of(from_, "C3").size());
}

TEST_F(WarmStartTest, TakesTheTablesThatWereChosenAndNoOthers) {
  config_.train.warm_start.tables = {"C2", "*4"};
  config_.train.warm_start.dense = false;
  const std::string at = start();
  EXPECT_TRUE(rows_of(at, "C1").empty());
  EXPECT_EQ(rows_of(at, "C2"), rows_of(from_, "C2"));
  EXPECT_TRUE(rows_of(at, "C3").empty());
  EXPECT_EQ(rows_of(at, "C4"), rows_of(from_, "C4"));
  EXPECT_NE(read_file(at + "/dense.bin"), read_file(from_ + "/dense.bin"));
}

TEST_F(WarmStartTest, TablesMayHaveOtherNumbersInTheNewJob) {
  config_.features["C1"].table = "zzz";  // C2 is table 0 now
  config_.train.warm_start.tables = {"C2", "C3"};
  config_.train.warm_start.dense = false;
  EXPECT_EQ(rows_of(start(), "C3"), rows_of(from_, "C3"));
  train(config_, {.overwrite = true});  // and finds them
  const checkpoint::Manifest end =
      checkpoint::Manifest::read(checkpoint::list_checkpoints(config_.run_dir).back().path);
  EXPECT_EQ(end.tables[0].name, "C2");
  EXPECT_LE(end.tables[0].rows, 300);  // none exists twice
}

TEST_F(WarmStartTest, OfTheWeightsAloneBeginsWithFreshStateOfAnotherOptimizer) {
  config_.tables["default"].optimizer.type = RowOptimizerType::kAdam;
  config_.dense_optimizer.type = DenseOptimizerType::kSgd;
  EXPECT_THAT(error(), AllOf(HasSubstr("'C1'"), HasSubstr("'C4'"), HasSubstr("adagrad"),
                             HasSubstr("adam"), HasSubstr("optimizer_state: reset")));
  config_.train.warm_start.optimizer_state = job::OptimizerState::kReset;
  for (const auto& [id, row] : rows_of(start(), "C2")) {
    const std::vector<float> old = rows_of(from_, "C2").at(id);
    EXPECT_THAT(std::vector(row.begin(), row.begin() + 8),
                testing::ElementsAreArray(old.begin(), old.begin() + 8));
    EXPECT_THAT(std::vector(row.begin() + 8, row.end()), AllOf(testing::SizeIs(16), Each(0.0F)));
  }
}

TEST_F(WarmStartTest, OnShardsIsThatInOneProcess) {
  train(config_, {});
  const std::string expected =
      checkpoint::verify_checkpoint(checkpoint::list_checkpoints(config_.run_dir).back().path);
  config_.run_dir = directory_.path() + "/shards";
  config_.train.warm_start.from =
      checkpoint::reshard_checkpoint(from_, 3, directory_.path() + "/resharded");
  for (const std::int64_t shards : {1, 2}) {
    const TrainOutcome outcome = TinyCluster(config_, shards, 1).train({.overwrite = true});
    EXPECT_EQ(checkpoint::verify_checkpoint(outcome.last_checkpoint), expected)
        << shards << " shards";
  }
}

TEST_F(WarmStartTest, IsNotRepeatedWhenTheRunIsResumed) {
  train(config_, {});
  const std::string expected =
      checkpoint::verify_checkpoint(checkpoint::list_checkpoints(config_.run_dir).back().path);
  std::atomic<bool> stop = false;
  config_.run_dir = directory_.path() + "/disturbed";
  config_.train.report_every = "1 steps";
  train(config_, {.stop = &stop, .on_report = [&](const Report& r) { stop = r.step >= 17; }});
  std::filesystem::remove_all(directory_.path() + "/first");  // no longer needed
  testing::internal::CaptureStderr();
  const TrainOutcome outcome = train(config_, {.resume = true});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("train.warm_start is not repeated"));
  EXPECT_EQ(checkpoint::verify_checkpoint(outcome.last_checkpoint), expected);
}

TEST_F(WarmStartTest, ARunThatIsUnderWayCannotGetOne) {
  config_.run_dir = directory_.path() + "/first";
  config_.train.max_steps = 12;
  try {
    train(config_, {.resume = true});
    FAIL() << "resumed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("train.warm_start.from: \"\" -> "));
  }
}

TEST_F(WarmStartTest, TablesThatDoNotFitAreNamedWithBothSides) {
  config_.tables["C1"] = config_.tables["C2"] = config_.tables["C3"] = config_.tables["C4"] =
      config_.tables["default"];
  config_.model.type = job::ModelType::kFfnn;
  config_.tables["C1"].dim = 4;
  EXPECT_THAT(error(), AllOf(HasSubstr("'C1' of " + from_), HasSubstr("8 weights"),
                             HasSubstr("of 4"), Not(HasSubstr("'C2'"))));
  config_.tables.erase("C1");
  config_.features["C1"].table = "users";
  EXPECT_THAT(error(),
              AllOf(HasSubstr("'C1' of " + from_),
                    HasSubstr("not a table of the configuration, which has: C2, C3, C4, users")));
  config_.train.warm_start.tables = {"itmes"};
  EXPECT_THAT(error(),
              AllOf(HasSubstr("'itmes' is not a table of " + from_), HasSubstr("C1, C2, C3, C4")));
}

TEST_F(WarmStartTest, ADenseNetworkThatDoesNotFitIsNamedWithBothShapes) {
  config_.model.top = {17};
  EXPECT_THAT(error(), AllOf(HasSubstr("train.warm_start.dense"), HasSubstr("top"),
                             HasSubstr("[16"), HasSubstr("[17")));
}

}  // namespace
}  // namespace satrap::trainer
