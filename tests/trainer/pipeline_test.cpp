#include <atomic>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/checkpoint/checkpoint_writer.h"
#include "satrap/core/error.h"
#include "satrap/data/open_rows.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/scorer.h"
#include "satrap/pipeline/work.h"
#include "satrap/trainer/trainer.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

using nlohmann::json;

/// The definition of hybrid(τ), one step after the other: the lookup of step t reads exactly
/// E_{t-1-τ}. Returns the digest of the final state, as a checkpoint.
std::string train_sequentially(const job::JobConfig& config) {
  ThreadPool pool(1);
  const data::Dataset data(config.data);
  const auto transforms = data::fit_transforms(data, config.seed);
  pipeline::Cluster alone(config, {});
  pipeline::Model model(config, data.schema(), alone, pool);
  embedding::RowAccess& access = model.tables->access();
  embedding::Planner planner(access.layout(), pool);
  data::ReadOptions read;
  read.seed = config.seed;
  read.batch_size = config.data.batch_size;
  const auto source = data::open_batches(data, transforms, data::Role::kTrain, read);

  std::vector<std::unique_ptr<pipeline::Work>> works;
  for (auto work = std::make_unique<pipeline::Work>(); source->next(work->batch);
       work = std::make_unique<pipeline::Work>()) {
    work->step = std::ssize(works) + 1;
    work->shares.positions = {source->position()};
    work->rows = access.make_rows();
    work->rows->make_plan(planner, work->batch, work->step);
    works.push_back(std::move(work));
  }
  const auto look_up = [&](pipeline::Work& work) {
    work.inputs.begin(work.batch, access.layout());
    work.grad_pooled.resize(work.batch.num_examples, access.layout().output_width);
    work.probabilities.resize(work.batch.num_examples, 1);
    work.rows->pool(work.batch, work.inputs.pooled(), work.inputs.mask());
  };
  const table::StalenessBound bound = config.train.staleness_bound();
  const std::int64_t steps = std::ssize(works);
  const auto work_of = [&](std::int64_t step) -> pipeline::Work& {
    return *works[static_cast<std::size_t>(step - 1)];
  };
  const std::vector<float>& first_labels = work_of(1).batch.labels;
  const auto positives = static_cast<double>(std::ranges::count(first_labels, 1.0F));
  const double average = (positives + 0.5) / (static_cast<double>(first_labels.size()) + 1.0);
  model.network->set_base_rates({&average, 1});

  std::int64_t looked_up = 0;
  const auto look_up_with = [&](std::int64_t version) {  // the steps that read E_version
    while (looked_up < steps && bound.oldest_version(looked_up + 1) <= version) {
      look_up(work_of(++looked_up));
    }
  };
  look_up_with(0);
  for (std::int64_t t = 1; t <= steps; ++t) {
    pipeline::Work& work = work_of(t);
    model.network->forward_backward(
        {.num_examples = work.batch.num_examples,
         .numeric = work.inputs.numeric(),
         .pooled = work.inputs.pooled(),
         .labels = host_matrix(std::span(work.batch.labels), work.batch.num_examples, 1),
         .step = t},
        {work.probabilities.view(), work.grad_pooled.view()});
    model.network->apply(t);
    work.rows->update(work.grad_pooled.view(), t);  // E_t
    look_up_with(t);
  }

  const TemporaryDirectory directory;
  checkpoint::CheckpointWriter writer(directory.path() + "/checkpoints", 1);
  auto content = std::make_unique<checkpoint::CheckpointContent>();
  content->step = steps;
  content->positions = works.back()->shares.positions;
  content->transforms_json = transforms.to_json(data.schema());
  content->capture(model);
  writer.start(std::move(content));
  writer.wait();
  return checkpoint::verify_checkpoint(
      checkpoint::find_checkpoint(directory.path() + "/checkpoints"));
}

struct Bound {
  std::int64_t staleness;
  bool grows = false;

  void apply_to(job::JobConfig& config) const {
    config.train.staleness = staleness;
    config.train.staleness_schedule =
        grows ? job::StalenessSchedule::kSqrt : job::StalenessSchedule::kConstant;
    if (grows) config.train.staleness_factor = 0.5;
  }
  std::int64_t at(std::int64_t step) const {
    std::int64_t bound = grows ? 0 : staleness;
    while (bound < staleness && 4 * (bound + 1) * (bound + 1) <= step) ++bound;  // half the root
    return bound;
  }
};

class Pipeline : public testing::TestWithParam<Bound> {};
INSTANTIATE_TEST_SUITE_P(Staleness,
                         Pipeline,
                         testing::Values(Bound{0},
                                         Bound{1},
                                         Bound{4},
                                         Bound{16},
                                         Bound{100},
                                         Bound{1, true},
                                         Bound{16, true}),
                         [](const auto& test) {
                           return concat(test.param.grows ? "UpTo" : "", test.param.staleness);
                         });

TEST_P(Pipeline, DeterministicTrainingEqualsTheSequentialDefinitionBitForBit) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  GetParam().apply_to(config);
  const std::string expected = train_sequentially(config);
  for (const std::int64_t threads : {1, 2}) {
    config.train.threads = threads;
    const TrainOutcome outcome = train(config, {.overwrite = true});
    EXPECT_TRUE(outcome.finished);
    EXPECT_EQ(checkpoint::verify_checkpoint(outcome.last_checkpoint), expected)
        << threads << " threads";
  }
}

TEST_P(Pipeline, DeterministicLookupsReadExactlyTheBoundBehind) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  GetParam().apply_to(config);
  const std::int64_t steps = 40;
  const json summary = summary_of(train(config, {}));
  ASSERT_EQ(summary["step"], steps);
  // Step t misses min(t - 1, τ(t)) updates: there is nothing older than E_0.
  std::vector<std::int64_t> expected(static_cast<std::size_t>(GetParam().staleness + 1), 0);
  for (std::int64_t t = 1; t <= steps; ++t) {
    ++expected[static_cast<std::size_t>(std::min(t - 1, GetParam().at(t)))];
  }
  EXPECT_EQ(summary["staleness"]["histogram"].get<std::vector<std::int64_t>>(), expected);
}

TEST_P(Pipeline, FreeRunningLookupsStayWithinTheBound) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  GetParam().apply_to(config);
  config.train.deterministic = false;
  const json summary = summary_of(train(config, {}));
  EXPECT_LE(summary["staleness"]["max"].get<std::int64_t>(), GetParam().at(40));
  std::int64_t lookups = 0;
  for (const auto& count : summary["staleness"]["histogram"]) lookups += count.get<std::int64_t>();
  EXPECT_EQ(lookups, 40);
}

TEST_P(Pipeline, StoppedAndResumedRunEndsWithTheBitsOfAnUndisturbedOne) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/undisturbed");
  GetParam().apply_to(config);
  config.train.eval_every = "7 steps";
  const std::string expected = checkpoint::verify_checkpoint(train(config, {}).last_checkpoint);

  config.run_dir = directory.path() + "/disturbed";
  config.train.report_every = "1 steps";
  bool finished = false;
  int stops = 0;
  for (std::int64_t next_stop = 3; !finished; next_stop += 11) {
    std::atomic<bool> stop = false;
    TrainOptions options;
    options.resume = true;
    options.stop = &stop;
    options.on_report = [&](const Report& report) { stop = report.step >= next_stop; };
    finished = train(config, options).finished;
    stops += finished ? 0 : 1;
  }
  EXPECT_GE(stops, 3);
  const auto checkpoints = checkpoint::list_checkpoints(config.run_dir);
  ASSERT_FALSE(checkpoints.empty());
  EXPECT_EQ(checkpoints.back().step, 40);
  EXPECT_EQ(checkpoint::verify_checkpoint(checkpoints.back().path), expected);
}

TEST(Trainer, SyncIsHybridWithBoundZero) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/sync");
  config.train.mode = job::TrainMode::kSync;
  const std::string sync = checkpoint::verify_checkpoint(train(config, {}).last_checkpoint);
  config.run_dir = directory.path() + "/hybrid";
  config.train.mode = job::TrainMode::kHybrid;
  config.train.staleness = 0;
  EXPECT_EQ(checkpoint::verify_checkpoint(train(config, {}).last_checkpoint), sync);
}

TEST(Trainer, CheckpointsTakenWhileTrainingDoNotChangeTheResult) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/without");
  const std::string expected = checkpoint::verify_checkpoint(train(config, {}).last_checkpoint);
  config.run_dir = directory.path() + "/with";
  config.checkpoint.every = "3 steps";
  EXPECT_EQ(checkpoint::verify_checkpoint(train(config, {}).last_checkpoint), expected);
}

/// Trains a run with checkpoints, and goes on from each.
void expect_every_checkpoint_continues_to_the_same_bits(job::JobConfig config) {
  const TemporaryDirectory directory;
  config.run_dir = directory.path() + "/run";
  config.checkpoint.every = "9 steps";
  config.checkpoint.keep = 100;
  const std::string expected = checkpoint::verify_checkpoint(train(config, {}).last_checkpoint);
  const auto checkpoints = checkpoint::list_checkpoints(config.run_dir);
  ASSERT_EQ(checkpoints.size(), 5U);  // 9, 18, 27, 36 and the last
  config.run_dir = directory.path() + "/continued";
  for (const checkpoint::CheckpointInfo& checkpoint : checkpoints) {
    TrainOptions options;
    options.resume_from = checkpoint.path;
    const TrainOutcome outcome = train(config, options);
    EXPECT_EQ(checkpoint::verify_checkpoint(outcome.last_checkpoint), expected) << checkpoint.path;
  }
}

TEST(Trainer, EveryCheckpointOfARunContinuesToTheSameBits) {
  expect_every_checkpoint_continues_to_the_same_bits(tiny_job({}));
}

TEST(Trainer, EveryCheckpointOfRowsOfSixteenBitsContinuesToTheSameBits) {
  job::JobConfig config = tiny_job({});
  config.tables["default"].weights = FloatType::kBf16;
  config.train.staleness = 2;
  expect_every_checkpoint_continues_to_the_same_bits(config);
}

/// Rows of a table that go, by age and for want of room.
job::JobConfig tiny_job_with_limits() {
  job::JobConfig config = tiny_job({});
  config.data.synthetic.cardinalities = {50, 300, 20'000, 7};
  config.tables["default"].capacity_rows = 1;
  config.tables["default"].ttl_steps = 12;
  config.tables["default"].admit_after = 2;
  config.train.prefetch_batches = 2;
  config.train.staleness = 1;
  return config;
}

TEST(Trainer, EveryCheckpointOfTablesWithLimitsContinuesToTheSameBits) {
  expect_every_checkpoint_continues_to_the_same_bits(tiny_job_with_limits());
}

TEST(Trainer, TablesWithLimitsEndWithTheSameBitsWithAnyNumberOfThreadsAndWithEvaluations) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job_with_limits();
  std::string expected;
  for (const std::int64_t threads : {1, 3}) {
    config.run_dir = concat(directory.path(), "/", threads);
    config.train.threads = threads;
    const TrainOutcome outcome = train(config, {});
    const std::string digest = checkpoint::verify_checkpoint(outcome.last_checkpoint);
    if (expected.empty()) expected = digest;
    EXPECT_EQ(digest, expected);
    config.train.eval_every = "5 steps";  // of rows that plans have already left behind
  }
  config.tables["default"] = {};
  config.tables["default"].dim = 8;
  config.run_dir = directory.path() + "/unlimited";
  EXPECT_NE(checkpoint::verify_checkpoint(train(config, {}).last_checkpoint), expected);
}

TEST(Trainer, KeepsOnlyTheNewestCheckpoints) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  config.checkpoint.every = "5 steps";
  config.checkpoint.keep = 2;
  train(config, {});
  const auto checkpoints = checkpoint::list_checkpoints(config.run_dir);
  ASSERT_EQ(checkpoints.size(), 2U);
  EXPECT_EQ(checkpoints[0].step, 35);
  EXPECT_EQ(checkpoints[1].step, 40);
}

TEST(Trainer, TrainsOverSeveralEpochs) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  config.train.epochs = 3;
  const json summary = summary_of(train(config, {}));
  EXPECT_EQ(summary["step"], 120);
  EXPECT_EQ(summary["examples"], 120 * 64);
}

TEST(Trainer, StopsAfterMaxSteps) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  config.train.max_steps = 7;
  EXPECT_EQ(summary_of(train(config, {}))["step"], 7);
}

TEST(Trainer, RefusesARunDirectoryInUseUnlessToldToOverwrite) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  config.train.max_steps = 2;
  train(config, {});
  EXPECT_THROW(train(config, {}), Error);
  EXPECT_TRUE(train(config, {.overwrite = true}).finished);
}

TEST(Trainer, EndsARunThatDiverges) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  config.dense_optimizer.type = DenseOptimizerType::kSgd;
  config.dense_optimizer.lr = 1e30;
  config.train.max_nonfinite_steps = 3;
  try {
    train(config, {});
    FAIL() << "should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDiverged);
    EXPECT_NE(std::string(error.what()).find("3 steps"), std::string::npos) << error.what();
  }
}

TEST(Trainer, EvaluatingACheckpointGivesTheMetricsOfTheSummary) {
  const TemporaryDirectory directory;
  job::JobConfig config = tiny_job(directory.path() + "/run");
  const TrainOutcome outcome = train(config, {});
  const json summary = summary_of(outcome);
  const Evaluation evaluation = evaluate(config, {outcome.last_checkpoint}, nullptr);
  EXPECT_EQ(evaluation.auc, summary["eval"]["auc"].get<double>());
  EXPECT_EQ(evaluation.logloss, summary["eval"]["logloss"].get<double>());
  EXPECT_EQ(evaluation.examples, 512);
  EXPECT_GT(evaluation.auc, 0.55);  // it has learnt something
}

}  // namespace
}  // namespace satrap::trainer
