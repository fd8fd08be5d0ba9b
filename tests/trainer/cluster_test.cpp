#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/core/error.h"
#include "satrap/dense/dense_network.h"
#include "tests/trainer/tiny_cluster.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string digest_of(const TrainOutcome& outcome) {
  return checkpoint::verify_checkpoint(outcome.last_checkpoint);
}

std::vector<float> dense_of(const TrainOutcome& outcome) {
  std::ifstream file(outcome.last_checkpoint + "/dense.bin", std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return largest;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

class ClusterTest : public testing::Test {
 protected:
  std::string directory(const std::string& name) const { return directory_.path() + "/" + name; }

  job::JobConfig job(const std::string& name) const { return tiny_job(directory(name)); }

  const TemporaryDirectory directory_;
};

TEST_F(ClusterTest, SyncOnAnyNumberOfShardsHasTheBitsOfOneProcess) {
  job::JobConfig alone = job("alone");
  alone.train.mode = job::TrainMode::kSync;
  const std::string expected = digest_of(train(alone, {}));
  for (std::int64_t shards = 1; shards <= 3; ++shards) {
    job::JobConfig config = alone;
    config.run_dir = directory(concat("shards-", shards));
    EXPECT_EQ(digest_of(TinyCluster(config, shards, 1).train()), expected) << shards << " shards";
  }
}

TEST_F(ClusterTest, DeterministicHybridOnAnyNumberOfShardsHasTheBitsOfOneProcess) {
  for (const std::int64_t staleness : {1, 4, 100}) {
    job::JobConfig alone = job(concat("alone-", staleness));
    alone.train.staleness = staleness;
    if (staleness == 4) {
      alone.train.staleness_schedule = job::StalenessSchedule::kSqrt;
      alone.train.staleness_factor = 0.5;
    }
    const std::string expected = digest_of(train(alone, {}));
    for (std::int64_t shards = 1; shards <= 3; ++shards) {
      job::JobConfig config = alone;
      config.run_dir = directory(concat("shards-", shards, "-", staleness));
      EXPECT_EQ(digest_of(TinyCluster(config, shards, 1).train()), expected)
          << shards << " shards, staleness " << staleness;
    }
  }
}

TEST_F(ClusterTest, RanksThatShareAGlobalBatchTrainAsOneDoes) {
  job::JobConfig config = job("one");
  config.train.mode = job::TrainMode::kSync;
  config.data.synthetic.rows = 64 * 200;
  config.model.dropout = 0.1;
  const TrainOutcome one = TinyCluster(config, 2, 1).train();
  for (std::int64_t ranks = 2; ranks <= 4; ranks += 2) {
    config.run_dir = directory(concat("ranks-", ranks));
    const TrainOutcome several = TinyCluster(config, 2, ranks).train();
    EXPECT_EQ(summary_of(several)["step"], 200);
    EXPECT_EQ(summary_of(several)["examples"], 64 * 200);
    EXPECT_LT(largest_difference(dense_of(several), dense_of(one)), 1e-5) << ranks << " ranks";
    EXPECT_NEAR(summary_of(several)["eval"]["auc"], summary_of(one)["eval"]["auc"], 1e-4);
  }
}

TEST_F(ClusterTest, LargeDenseNetworksAreSummedInStretchesAsIfAtOnce) {
  job::JobConfig config = job("one");
  config.model.top = {600, 400};
  config.data.synthetic.rows = 64 * 20 + 9;  // the second rank gets none of the last batch
  const TrainOutcome one = TinyCluster(config, 1, 1).train();
  config.run_dir = directory("two");
  const TrainOutcome two = TinyCluster(config, 1, 2).train();
  EXPECT_GT(std::ssize(dense_of(one)), 3 * dense::DenseNetwork::kGradientBucket);
  EXPECT_LT(largest_difference(dense_of(two), dense_of(one)), 1e-5);
}

TEST_F(ClusterTest, RanksWithUnequalBatchesStartFromTheAverageOfAllExamples) {
  for (const std::int64_t rows : {40, 9}) {  // of a batch of 64: 32 and 8, 9 and none
    job::JobConfig config = job(concat("one-", rows));
    config.train.mode = job::TrainMode::kSync;
    config.data.synthetic.rows = rows;
    const TrainOutcome one = TinyCluster(config, 1, 1).train();
    config.run_dir = directory(concat("two-", rows));
    const TrainOutcome two = TinyCluster(config, 1, 2).train();
    EXPECT_EQ(summary_of(two)["step"], 1);
    EXPECT_LT(largest_difference(dense_of(two), dense_of(one)), 1e-6) << rows << " rows";
  }
}

TEST_F(ClusterTest, GroupsSpreadOverRanksAreEvaluatedAsByOne) {
  for (const std::int64_t ranks : {1, 2, 3}) {
    job::JobConfig config = job(concat("ranks-", ranks));
    config.data.group_by = "C4";  // seven values: every rank has rows with each
    const TrainOutcome outcome = TinyCluster(config, 1, ranks).train();
    const json summary = summary_of(outcome);
    const Evaluation alone = evaluate(config, {outcome.last_checkpoint}, nullptr);
    EXPECT_EQ(summary["eval"]["groups"], alone.grouped->num_groups) << ranks << " ranks";
    EXPECT_GT(alone.grouped->num_groups, 3);
    EXPECT_NEAR(summary["eval"]["gauc"], alone.grouped->auc, 1e-4) << ranks << " ranks";
    EXPECT_NE(alone.grouped->auc, alone.auc);
  }
}

TEST_F(ClusterTest, SeveralRanksInDeterministicHybridRepeatTheirBits) {
  job::JobConfig config = job("first");
  const std::string expected = digest_of(TinyCluster(config, 1, 3).train());
  for (std::int64_t shards = 1; shards <= 3; ++shards) {
    config.run_dir = directory(concat("again-", shards));
    EXPECT_EQ(digest_of(TinyCluster(config, shards, 3).train()), expected) << shards << " shards";
  }
}

TEST_F(ClusterTest, RowsThatDoNotDivideEvenlyAreAllTrainedOnOnce) {
  job::JobConfig config = job("uneven");
  config.data.synthetic.rows = 64 * 3 + 9;  // the second rank gets none of the last batch
  config.train.epochs = 3;
  const json summary = summary_of(TinyCluster(config, 2, 2).train());
  EXPECT_EQ(summary["examples"], 3 * (64 * 3 + 9));
  EXPECT_EQ(summary["step"], 3 * 4);
  EXPECT_EQ(summary["eval"]["examples"], 512);
}

TEST_F(ClusterTest, ARestartOnFreshShardsEndsWithTheSameBits) {
  job::JobConfig config = job("undisturbed");
  config.checkpoint.every = "7 steps";
  for (const std::int64_t ranks : {1, 2}) {
    config.run_dir = directory(concat("undisturbed-", ranks));
    config.train.max_steps = 0;
    const std::string expected = digest_of(TinyCluster(config, 2, ranks).train());

    config.run_dir = directory(concat("disturbed-", ranks));
    TinyCluster cluster(config, 2, ranks);
    std::atomic<bool> stop = false;
    std::atomic<int> requests = 0;
    cluster.start_shards([&] { stop = ++requests > 60; });
    const TrainOutcome stopped = cluster.train({.stop = &stop});
    EXPECT_FALSE(stopped.finished);
    cluster.start_shards();
    const TrainOutcome resumed = cluster.train({.resume = true});
    EXPECT_TRUE(resumed.finished);
    EXPECT_EQ(digest_of(resumed), expected) << ranks << " ranks";
  }
}

TEST_F(ClusterTest, ACheckpointContinuesOnOtherNumbersOfShardsAndRanks) {
  job::JobConfig config = job("run");
  config.train.mode = job::TrainMode::kSync;
  config.train.max_steps = 20;
  const TrainOutcome first = TinyCluster(config, 3, 2).train();
  config.train.max_steps = 0;
  const std::string expected = [&] {
    job::JobConfig whole = config;
    whole.run_dir = directory("whole");
    return summary_of(TinyCluster(whole, 1, 1).train())["eval"]["auc"].dump();
  }();
  struct Shape {
    std::int64_t shards, ranks;
  };
  for (const Shape shape : {Shape{1, 1}, Shape{2, 1}, Shape{4, 4}}) {
    job::JobConfig other = config;
    other.run_dir = directory(concat("other-", shape.shards, "-", shape.ranks));
    const TrainOutcome outcome =
        TinyCluster(other, shape.shards, shape.ranks).train({.resume_from = first.last_checkpoint});
    EXPECT_TRUE(outcome.finished);
    EXPECT_EQ(summary_of(outcome)["step"], 40);
    EXPECT_NEAR(summary_of(outcome)["eval"]["auc"].get<double>(), std::stod(expected), 1e-4);
  }
  // Also without shards.
  config.run_dir = directory("embedded");
  const TrainOutcome outcome = train(config, {.resume_from = first.last_checkpoint});
  EXPECT_NEAR(summary_of(outcome)["eval"]["auc"].get<double>(), std::stod(expected), 1e-4);
}

TEST_F(ClusterTest, StalenessNeverPassesTheBoundAndIsInTheSummary) {
  for (const std::int64_t bound : {0, 1, 4, 16}) {
    job::JobConfig config = job(concat("bound-", bound));
    config.train.deterministic = false;
    config.train.staleness = bound;
    TinyCluster cluster(config, 2, 2);
    std::atomic<unsigned> seed = 1;
    cluster.start_shards([&] {  // random delays: up to 2 ms
      std::minstd_rand random(seed.fetch_add(1));
      const auto end =
          std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 2000);
      while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
    const json staleness = summary_of(cluster.train())["staleness"];
    EXPECT_EQ(staleness["bound"], bound);
    EXPECT_LE(staleness["max"].get<std::int64_t>(), bound);
    EXPECT_EQ(staleness["histogram"].size(), static_cast<std::size_t>(bound + 1));
    std::int64_t lookups = 0;
    for (const json& count : staleness["histogram"]) lookups += count.get<std::int64_t>();
    EXPECT_EQ(lookups, 40);
  }
}

TEST_F(ClusterTest, AsyncTrainsOnEveryRowOnceAndEndsWithOneModel) {
  job::JobConfig config = job("async");
  config.train.mode = job::TrainMode::kAsync;
  config.train.deterministic = false;
  config.data.synthetic.rows = 64 * 400 + 9;
  config.dense_optimizer.lr = 0.01;
  const TrainOutcome outcome = TinyCluster(config, 2, 2).train();
  const json summary = summary_of(outcome);
  EXPECT_EQ(summary["examples"], 64 * 400 + 9);
  EXPECT_GT(summary["eval"]["auc"].get<double>(), 0.6);
  // The evaluated model is the one in the checkpoint.
  const Evaluation again = evaluate(config, {outcome.last_checkpoint}, nullptr);
  EXPECT_NEAR(again.auc, summary["eval"]["auc"].get<double>(), 1e-6);
}

TEST_F(ClusterTest, AsyncOfOneRankLearnsAboutAsWellAsSync) {
  job::JobConfig config = job("sync");
  config.train.mode = job::TrainMode::kSync;
  config.data.synthetic.rows = 64 * 400;
  const double sync = summary_of(TinyCluster(config, 1, 1).train())["eval"]["auc"];
  config.run_dir = directory("async");
  config.train.mode = job::TrainMode::kAsync;
  config.train.deterministic = false;
  const double async = summary_of(TinyCluster(config, 1, 1).train())["eval"]["auc"];
  EXPECT_NEAR(async, sync, 0.03);
}

TEST_F(ClusterTest, SeveralRanksCannotShareEmbeddedTables) {
  job::JobConfig config = job("embedded");
  TrainOptions options;
  options.cluster.num_ranks = 2;
  options.cluster.store = "file:///nowhere";
  try {
    train(config, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_THAT(error.what(), HasSubstr("embedding.store: embedded"));
    EXPECT_THAT(error.what(), HasSubstr("2 ranks"));
  }
}

TEST_F(ClusterTest, AJobThatDivergesEndsOnAllRanks) {
  job::JobConfig config = job("diverges");
  config.data.synthetic.rows = 64 * 4000;
  TinyCluster cluster(config, 1, 2);
  cluster.job().train.max_nonfinite_steps = 1;
  cluster.job().dense_optimizer.lr = 1e38;
  for (const std::exception_ptr& error : cluster.try_to_train()) {
    EXPECT_THAT(message_of(error), HasSubstr("diverged"));
  }
}

TEST_F(ClusterTest, ARankThatDiesEndsTheOthersWithAnError) {
  job::JobConfig config = job("dies");
  config.data.synthetic.rows = 64 * 4000;
  config.train.report_every = "10 steps";
  const std::vector<std::int64_t> tiny = config.model.top, large = {600, 400};
  for (const char* mode : {"sync", "hybrid", "async", "sync, while sums are under way"}) {
    const std::string word = std::string(mode).substr(0, std::string(mode).find(','));
    config.train.mode = value_of<job::TrainMode>(word, job::kTrainModes).value();
    config.model.top = word == mode ? tiny : large;
    config.train.deterministic = false;
    config.run_dir = directory(concat("dies-", mode));
    TinyCluster cluster(config, 2, 2);
    cluster.job().cluster.timeout = "5s";
    TrainOptions options;
    options.on_report = [](const Report&) { throw Error(ErrorCode::kIo, "the disk is gone"); };
    const std::vector<std::exception_ptr> errors = cluster.try_to_train(options);  // chief reports
    EXPECT_THAT(message_of(errors[0]), HasSubstr("the disk is gone")) << mode;
    EXPECT_NE(message_of(errors[1]), "") << mode;
  }
}

}  // namespace
}  // namespace satrap::trainer
