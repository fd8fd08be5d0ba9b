#include <atomic>
#include <cmath>
#include <fstream>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/trainer/export.h"
#include "satrap/trainer/predict.h"
#include "satrap/trainer/trainer.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/tiny_cluster.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

/// Two independent labels of the same rows: `odd` follows from the feature f, `third` from g.
class LabelsRun : public testing::Test {
 protected:
  static constexpr int kRows = 3000;

  LabelsRun() {
    std::ofstream file(path("log.csv"));
    file << "third,f,g,odd\n";
    for (std::uint64_t r = 0; r < kRows; ++r) {
      const std::uint64_t f = hash64(r, 1) % 20, g = hash64(r, 2) % 20;
      file << label(1, r) << ',' << f << ',' << g << ',' << label(0, r) << '\n';
    }
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  job::JobConfig job(const std::string& run) const {
    job::JobConfig config;
    config.run_dir = path(run);
    config.data.train.path = {path("log.csv")};
    config.data.eval.path = config.data.train.path;
    config.data.batch_size = 100;
    for (const char* name : {"f", "g"}) {
      config.data.schema.features.emplace_back().name = name;
      config.data.schema.features.back().type = data::IdType::kInt;
    }
    config.data.schema.labels.resize(2);
    config.data.schema.labels[0].source.column = "odd";
    config.data.schema.labels[1] = {.name = "a third", .source = {.column = "third"}};
    config.tables["default"].dim = 4;
    config.tables["default"].optimizer.lr = 0.1;
    config.features["default"];
    config.model.type = job::ModelType::kFfnn;
    config.model.bottom = {};
    config.model.top = {16};
    config.model.head = {8};
    config.dense_optimizer.lr = 0.01;
    config.train.epochs = 5;
    config.train.deterministic = true;
    config.train.report_every = "never";
    config.checkpoint.every = "never";
    return config;
  }

  /// Label l of row r, in the order of job().
  static bool label(std::size_t l, std::uint64_t r) {
    return l == 0 ? hash64(r, 1) % 20 % 2 == 1 : hash64(r, 2) % 20 % 3 == 0;
  }

  /// [kRows, 2]
  static std::vector<float> predictions(const job::JobConfig& config,
                                        const std::string& checkpoint) {
    std::vector<float> all;
    predict(config, {checkpoint}, nullptr, {}, [&](const PredictedLines& lines) {
      all.insert(all.end(), lines.predictions.begin(), lines.predictions.end());
    });
    return all;
  }

  static double logloss_of(std::span<const float> probabilities,
                           std::size_t l,
                           std::uint64_t first) {
    const std::size_t rows = probabilities.size() / 2;
    double loss = 0.0;
    for (std::size_t r = 0; r < rows; ++r) {
      const double p = static_cast<double>(probabilities[2 * r + l]);
      loss -= std::log(label(l, first + r) ? p : 1.0 - p);
    }
    return loss / static_cast<double>(rows);
  }

  /// Metrics of label l by their definitions, over rows from `first` on. Probabilities: [rows, 2].
  static json metrics_of(std::span<const float> probabilities, std::size_t l, std::uint64_t first) {
    std::vector<double> of_class[2];
    double sum = 0.0;
    for (std::size_t r = 0; r < probabilities.size() / 2; ++r) {
      const double p = static_cast<double>(probabilities[2 * r + l]);
      const bool y = label(l, first + r);
      of_class[y ? 1 : 0].push_back(p);
      sum += p;
    }
    const auto negatives = static_cast<double>(of_class[0].size());
    const auto positives = static_cast<double>(of_class[1].size());
    double pairs = 0.0;  // in the right order; ties count half
    for (const double high : of_class[1]) {
      for (const double low : of_class[0]) pairs += high > low ? 1.0 : high == low ? 0.5 : 0.0;
    }
    const double rows = positives + negatives, share = positives / rows;
    const double entropy = -share * std::log(share) - (1 - share) * std::log(1 - share);
    return {{"auc", pairs / (positives * negatives)},
            {"ne", logloss_of(probabilities, l, first) / entropy},
            {"calibration", sum / positives}};
  }

  static void expect_near(const json& reported, const json& expected, const char* part) {
    for (const auto& [metric, value] : expected.items()) {
      // Equal rows count half in the AUC only if all their digits are equal.
      const double tolerance = metric == "auc" ? 1e-3 : 1e-6;
      EXPECT_NEAR(reported.at(metric).get<double>(), value.get<double>(), tolerance)
          << part << " " << metric;
    }
  }

  /// The message with which the configuration is refused; "" if `action` succeeds.
  template <class Action>
  static std::string refused(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig) << error.what();
      return error.what();
    }
    return "";
  }

  /// The message for each use of a checkpoint with another configuration; "" if it succeeds.
  std::vector<std::string> refused_uses(const job::JobConfig& config,
                                        const std::string& checkpoint) {
    job::JobConfig warm = config;
    warm.run_dir = path("warm");
    warm.train.max_steps = 1;
    warm.train.warm_start.from = checkpoint;
    return {
        refused([&] { evaluate(config, {checkpoint}, nullptr); }),
        refused([&] { predict(config, {checkpoint}, nullptr, {}, [](const PredictedLines&) {}); }),
        refused([&] { export_model(config, {checkpoint}, path("export"), {.overwrite = true}); }),
        refused([&] { train(warm, {.overwrite = true}); })};
  }

  const TemporaryDirectory directory_;
};

TEST_F(LabelsRun, BothAreLearned) {
  for (const std::vector<std::int64_t>& head : {std::vector<std::int64_t>{}, {8}}) {
    job::JobConfig config = job("run" + std::to_string(head.size()));
    config.model.head = head;
    const json summary = summary_of(train(config, {}));
    const json& labels = summary["eval"]["labels"];
    ASSERT_EQ(labels.size(), 2U);
    EXPECT_GT(labels["odd"]["auc"].get<double>(), 0.95);
    EXPECT_GT(labels["a third"]["auc"].get<double>(), 0.95);
    EXPECT_EQ(labels["odd"]["examples"], kRows);
  }
}

TEST_F(LabelsRun, BothAreLearnedInBf16) {
  job::JobConfig config = job("run");
  config.train.precision = job::Precision::kBf16;
  const json labels = summary_of(train(config, {}))["eval"]["labels"];
  EXPECT_GT(labels["odd"]["auc"].get<double>(), 0.9);
  EXPECT_GT(labels["a third"]["auc"].get<double>(), 0.9);
}

TEST_F(LabelsRun, TwoRanksOnTwoShardsTrainAsOneProcessDoes) {
  job::JobConfig config = job("alone");
  config.train.mode = job::TrainMode::kSync;
  config.train.epochs = 1;
  config.data.train.max_rows = 29 * 100 + 9;  // the second rank gets none of the last batch
  config.data.schema.labels[1].weight = 0.5;
  const std::vector<float> alone = predictions(config, train(config, {}).last_checkpoint);
  config.run_dir = path("ranks");
  const TrainOutcome outcome = TinyCluster(config, 2, 2).train();
  const std::vector<float> together = predictions(config, outcome.last_checkpoint);
  ASSERT_EQ(together.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(together[i], alone[i], 1e-3) << i;
  const json summary = summary_of(outcome);
  EXPECT_EQ(summary["step"], 30);
  EXPECT_EQ(summary["examples"], 29 * 100 + 9);
  EXPECT_EQ(summary["eval"]["examples"], kRows);  // of both ranks
  expect_near(summary["eval"]["labels"]["odd"], metrics_of(together, 0, 0), "odd");
  expect_near(summary["eval"]["labels"]["a third"], metrics_of(together, 1, 0), "a third");
}

TEST_F(LabelsRun, BothAreLearnedInAsyncMode) {
  job::JobConfig config = job("run");
  config.train.mode = job::TrainMode::kAsync;
  config.train.deterministic = false;
  const TrainOutcome outcome = TinyCluster(config, 2, 2).train();
  const json summary = summary_of(outcome);
  EXPECT_EQ(summary["examples"], 5 * kRows);
  const std::vector<float> probabilities = predictions(config, outcome.last_checkpoint);
  for (const std::size_t l : {0U, 1U}) {
    const json& label = summary["eval"]["labels"][l == 0 ? "odd" : "a third"];
    EXPECT_GT(label["auc"].get<double>(), 0.8) << l;
    expect_near(label, metrics_of(probabilities, l, 0), "eval");  // of the model in the checkpoint
  }
}

TEST_F(LabelsRun, TheRunsOwnNumbersAreThoseOfTheFirst) {
  job::JobConfig config = job("run");
  config.train.mode = job::TrainMode::kSync;
  config.train.max_steps = 19;
  const std::vector<float> before = predictions(config, train(config, {}).last_checkpoint);
  config.train.max_steps = 20;
  const TrainOutcome outcome = train(config, {.resume = true});
  const std::vector<float> after = predictions(config, outcome.last_checkpoint);
  const json summary = summary_of(outcome);
  // The window of the resumed run is step 20, which was scored with the model of step 19.
  const std::span<const float> window = std::span(before).subspan(2 * 1900, 2 * 100);
  for (const auto& [part, scores, first] :
       {std::tuple("train", window, 1900U), std::tuple("eval", std::span(after), 0U)}) {
    const json& labels = summary[part]["labels"];
    ASSERT_EQ(labels.size(), 2U);
    expect_near(summary[part], metrics_of(scores, 0, first), part);
    expect_near(labels["odd"], metrics_of(scores, 0, first), part);
    expect_near(labels["a third"], metrics_of(scores, 1, first), part);
  }
  const auto metrics = checkpoint::list_checkpoints(config.run_dir).back().metrics;
  const double odd = logloss_of(after, 0, 0), third = logloss_of(after, 1, 0);
  EXPECT_GT(std::abs(odd - third), 1e-4);
  EXPECT_NEAR(metrics.at("eval.logloss"), odd, 1e-6);
  EXPECT_NEAR(metrics.at("eval.labels.odd.logloss"), odd, 1e-6);
  EXPECT_NEAR(metrics.at("eval.labels.a third.logloss"), third, 1e-6);
}

TEST_F(LabelsRun, StoppedAndResumedItEndsWithTheBitsOfAnUndisturbedOne) {
  const std::string expected =
      checkpoint::verify_checkpoint(train(job("undisturbed"), {}).last_checkpoint);
  job::JobConfig config = job("disturbed");
  config.train.report_every = "1 steps";
  bool finished = false;
  int stops = 0;
  for (std::int64_t next_stop = 11; !finished; next_stop += 30) {
    std::atomic<bool> stop = false;
    TrainOptions options;
    options.resume = true;
    options.stop = &stop;
    options.on_report = [&](const Report& report) { stop = report.step >= next_stop; };
    finished = train(config, options).finished;
    stops += finished ? 0 : 1;
  }
  EXPECT_GE(stops, 2);
  EXPECT_EQ(checkpoint::verify_checkpoint(checkpoint::list_checkpoints(config.run_dir).back().path),
            expected);
}

TEST_F(LabelsRun, ACheckpointIsNotUsedUnderOtherNamesOrInAnotherOrder) {
  job::JobConfig config = job("run");
  config.train.max_steps = 2;
  const std::string checkpoint = train(config, {}).last_checkpoint;
  std::vector<data::NamedLabelConfig>& labels = config.data.schema.labels;
  labels[0].weight = 2.0;
  EXPECT_THAT(refused_uses(config, checkpoint), testing::Each(""));
  std::swap(labels[0], labels[1]);
  EXPECT_THAT(refused_uses(config, checkpoint),
              testing::Each(AllOf(HasSubstr("data.schema.labels: "), HasSubstr(checkpoint),
                                  HasSubstr("[odd, a third]"), HasSubstr("[a third, odd]"))));
  std::swap(labels[0], labels[1]);
  labels[1].name = "third";
  EXPECT_THAT(refused_uses(config, checkpoint),
              testing::Each(AllOf(HasSubstr("[odd, a third]"), HasSubstr("[odd, third]"))));
  labels.resize(1);
  EXPECT_THAT(refused_uses(config, checkpoint),
              testing::Each(AllOf(HasSubstr("[odd, a third]"), HasSubstr("[odd]"))));
}

TEST_F(LabelsRun, RowsAloneMayBeTakenForOtherLabels) {
  job::JobConfig config = job("run");
  config.train.max_steps = 2;
  config.train.warm_start.from = train(config, {}).last_checkpoint;
  config.run_dir = path("warm");
  config.data.schema.labels[1].name = "third";
  EXPECT_THAT(refused([&] { train(config, {}); }),
              HasSubstr("train.warm_start.dense: false takes only rows"));
  config.train.warm_start.dense = false;
  EXPECT_EQ(refused([&] { train(config, {.overwrite = true}); }), "");
}

TEST_F(LabelsRun, ASingleLabelWithoutANameMayBeOfAnotherColumn) {
  job::JobConfig config = job("run");
  config.train.max_steps = 2;
  config.data.schema.labels.clear();
  config.data.schema.label.column = "odd";
  const std::string checkpoint = train(config, {}).last_checkpoint;
  config.data.schema.label.column = "third";
  EXPECT_THAT(refused_uses(config, checkpoint), testing::Each(""));
  config.data.schema.label = {};
  config.data.schema.labels.push_back({.name = "named", .source = {.column = "odd"}});
  EXPECT_THAT(refused_uses(config, checkpoint), testing::Each(""));
}

TEST_F(LabelsRun, ACheckpointWhoseConfigurationIsNotThereIsUsedAsItIs) {
  job::JobConfig config = job("run");
  config.train.max_steps = 2;
  const std::string checkpoint = train(config, {}).last_checkpoint;
  checkpoint::Manifest manifest = checkpoint::Manifest::read(checkpoint);  // as in an older version
  manifest.files.erase(checkpoint::kConfigFile);
  std::ofstream(checkpoint + "/" + checkpoint::kManifestFile) << manifest.to_json();
  std::ofstream(config.run_dir + "/" + checkpoint::kConfigFile) << "data: {schema: {labels: 3}}\n";
  config.data.schema.labels[1].name = "third";
  testing::internal::CaptureStderr();
  EXPECT_EQ(refused([&] { evaluate(config, {checkpoint}, nullptr); }), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is not compared"));
}

TEST_F(LabelsRun, ARowIsPredictedForEachLabel) {
  const job::JobConfig config = job("run");
  const TrainOutcome outcome = train(config, {});
  const std::vector<float> all = predictions(config, outcome.last_checkpoint);
  ASSERT_EQ(all.size(), 2U * kRows);
  for (std::uint64_t r = 0; r < 10; ++r) {
    EXPECT_EQ(all[2 * r] > 0.5F, label(0, r)) << r;
    EXPECT_EQ(all[2 * r + 1] > 0.5F, label(1, r)) << r;
  }
}

TEST_F(LabelsRun, GroupsAreScoredForEachLabel) {
  job::JobConfig config = job("run");
  config.data.group_by = "g";
  config.train.max_steps = 20;
  const Evaluation evaluation = evaluate(config, {train(config, {}).last_checkpoint}, nullptr);
  ASSERT_EQ(evaluation.labels.size(), 2U);
  EXPECT_EQ(evaluation.labels[0].grouped->num_groups, 20);
  EXPECT_EQ(evaluation.labels[1].grouped->num_groups, 0);  // g decides it: a group has one class
}

TEST_F(LabelsRun, SlicesAndRanksAreScoredForEachLabelAsOneRankDoes) {
  for (const std::int64_t ranks : {1, 2, 3}) {
    job::JobConfig config = job("run-" + std::to_string(ranks));
    config.data.group_by = "f";
    config.train.max_steps = 20;
    config.train.metrics_at = {2};
    config.train.slices = {"third", "g"};
    const TrainOutcome outcome = TinyCluster(config, 1, ranks).train();
    const json found = summary_of(outcome)["eval"]["labels"];
    const Evaluation alone = evaluate(config, {outcome.last_checkpoint}, nullptr);
    ASSERT_EQ(alone.labels.size(), 2U);
    for (const Evaluation& label : alone.labels) {
      const json& mine = found[label.label];
      EXPECT_EQ(mine["positive_groups"], label.ranking.num_groups) << ranks;
      EXPECT_NEAR(mine["ndcg@2"], label.ranking.at[0].ndcg, 1e-4) << ranks;
      ASSERT_EQ(label.slices.size(), 2U);
      EXPECT_EQ(mine["slices"]["third"].size(), 2U) << "no row has another value";
      for (const SlicedColumn& column : label.slices) {
        const json& slices = mine["slices"][column.name];
        ASSERT_EQ(slices.size(), column.slices.size()) << ranks;
        std::int64_t examples = 0;
        for (std::size_t s = 0; s < slices.size(); ++s) {
          EXPECT_EQ(slices[s]["value"], *column.slices[s].value) << ranks;
          EXPECT_EQ(slices[s]["examples"], column.slices[s].metrics.examples) << ranks;
          EXPECT_NEAR(slices[s]["logloss"], column.slices[s].metrics.logloss, 1e-4) << ranks;
          examples += column.slices[s].metrics.examples;
        }
        EXPECT_EQ(examples, kRows);
      }
    }
  }
}

}  // namespace
}  // namespace satrap::trainer
