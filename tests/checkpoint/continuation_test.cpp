#include "satrap/checkpoint/continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/small_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A checkpoint of the small job, in the folder of its run.
class CompareWithCheckpoint : public testing::Test {
 protected:
  Continuation compare() {
    testing::internal::CaptureStderr();
    const Continuation result = compare_with_checkpoint(checkpoint_, config_);
    log_ = testing::internal::GetCapturedStderr();
    return result;
  }
  std::string problems() {
    return error_of(ErrorCode::kInvalidConfig,
                    [&] { compare_with_checkpoint(checkpoint_, config_); });
  }

  /// As in versions that kept the configuration only in the run's folder.
  void keep_in_run_folder(const std::string& yaml) {
    edit_manifest(checkpoint_, [](Manifest& manifest) { manifest.files.erase(kConfigFile); });
    write_file_atomic(run_.path() + "/" + kConfigFile, yaml);
  }

  const TemporaryDirectory run_;
  const std::string checkpoint_ = publish(run_.path() + "/checkpoints", small_content(5));
  job::JobConfig config_ = small_job();
  std::string log_;
};

TEST_F(CompareWithCheckpoint, TheSameConfigurationHasTheSameInput) {
  const Continuation result = compare();
  EXPECT_TRUE(result.has_same_input);
  EXPECT_EQ(result.batch_size, 10);
  EXPECT_THAT(log_, Not(HasSubstr("changed")));
}

TEST_F(CompareWithCheckpoint, AnEvaluationPartMayOnlyShrink) {
  const auto with_part = [](double fraction, const char* by) {
    job::JobConfig config = small_job();
    config.data.eval.path.clear();
    config.data.eval.fraction = fraction;
    config.data.eval.by = by;
    return config;
  };
  config_ = with_part(0.2, "hash");
  EXPECT_THAT(problems(), HasSubstr("kept no part of the training rows for evaluation, the "
                                    "configuration has fraction 0.2 by hash"));
  auto content = small_content(6);
  content->config_yaml = dump_config(with_part(0.2, "hash"));
  const std::string divided = publish(run_.path() + "/checkpoints", std::move(content));
  const auto problems_with = [&](double fraction, const char* by) {
    return error_of(ErrorCode::kInvalidConfig,
                    [&] { compare_with_checkpoint(divided, with_part(fraction, by)); });
  };
  EXPECT_TRUE(compare_with_checkpoint(divided, with_part(0.2, "hash")).has_same_input);
  EXPECT_FALSE(compare_with_checkpoint(divided, with_part(0.1, "hash")).has_same_input);
  EXPECT_FALSE(compare_with_checkpoint(divided, small_job()).has_same_input);
  EXPECT_THAT(problems_with(0.3, "hash"), HasSubstr("has fraction 0.3 by hash"));
  EXPECT_THAT(problems_with(0.2, "tail"), HasSubstr("has fraction 0.2 by tail"));
  EXPECT_THROW(check_predictions({divided, false}, with_part(0.3, "hash")), Error);
  EXPECT_NO_THROW(check_predictions({divided, false}, small_job()));
}

TEST_F(CompareWithCheckpoint, ChangesAreLoggedWithBothValues) {
  config_.run_dir = "runs/other";
  config_.train.max_steps = 12;
  EXPECT_TRUE(compare().has_same_input);
  EXPECT_THAT(log_, AllOf(HasSubstr("changed: train.max_steps: 0 -> 12\n"),
                          HasSubstr("changed (does not affect what is learned): run_dir: "
                                    "runs/small -> runs/other\n")));
}

TEST_F(CompareWithCheckpoint, AChangeOfTheInputIsToldAndSoIsTheFormerBatchSize) {
  config_.data.batch_size = 20;
  const Continuation result = compare();
  EXPECT_FALSE(result.has_same_input);
  EXPECT_EQ(result.batch_size, 10);
}

TEST_F(CompareWithCheckpoint, WhatIsImpossibleIsToldAtOnce) {
  config_.seed = 5;
  config_.model.top = {17};
  config_.train.max_steps = 12;
  EXPECT_THAT(problems(),
              AllOf(HasSubstr("cannot continue from " + checkpoint_ + " with another seed: 1 -> 5"),
                    HasSubstr("with another model.top: [2] -> [17]"), Not(HasSubstr("max_steps"))));
}

TEST_F(CompareWithCheckpoint, ADamagedConfigurationIsRefused) {
  flip_a_bit(checkpoint_ + "/" + kConfigFile);
  EXPECT_THAT(error_of(ErrorCode::kCorrupt, [&] { compare_with_checkpoint(checkpoint_, config_); }),
              HasSubstr("config.yaml: checksum"));
}

TEST_F(CompareWithCheckpoint, AnOlderCheckpointIsComparedWithTheConfigurationOfItsRun) {
  config_.seed = 5;
  keep_in_run_folder(dump_config(small_job()));
  EXPECT_THAT(problems(), HasSubstr("seed: 1 -> 5"));
}

TEST_F(CompareWithCheckpoint, WithoutAnyConfigurationAllCountsAsUnchanged) {
  edit_manifest(checkpoint_, [](Manifest& manifest) { manifest.files.erase(kConfigFile); });
  config_.seed = 5;
  config_.data.batch_size = 20;
  const Continuation result = compare();
  EXPECT_TRUE(result.has_same_input);
  EXPECT_EQ(result.batch_size, 20);
  EXPECT_EQ(log_, "");
}

TEST_F(CompareWithCheckpoint, AConfigurationThatCannotBeUnderstoodAnyMoreIsAWarning) {
  config_.seed = 5;
  for (const char* yaml :
       {"no_such_key: 1\n", "data: {schema: {numeric: [{name: a}, {name: a}]}}\n"}) {
    keep_in_run_folder(yaml);
    EXPECT_EQ(compare().batch_size, 10) << yaml;
    EXPECT_THAT(log_, AllOf(HasSubstr("warning"), HasSubstr("is not compared"))) << yaml;
  }
}

/// The small job with these labels instead of its own.
job::JobConfig job_of_labels(const std::vector<std::string>& names) {
  job::JobConfig config = small_job();
  config.data.schema.label = {};
  config.data.schema.labels.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    config.data.schema.labels[i].source.column = names[i];
  }
  return config;
}

class CheckLabels : public testing::Test {
 protected:
  std::string problem(const job::JobConfig& before, const job::JobConfig& now) {
    auto content = small_content(5);
    content->config_yaml = dump_config(before);
    const std::string checkpoint = publish(directory_.path(), std::move(content));
    return error_of(ErrorCode::kInvalidConfig, [&] { check_labels(checkpoint, now, "; advice"); });
  }
  const TemporaryDirectory directory_;
};

TEST_F(CheckLabels, OfTheSameNamesInTheSameOrderMayBeUsed) {
  EXPECT_EQ(problem(job_of_labels({"click", "buy"}), job_of_labels({"click", "buy"})), "");
}

TEST_F(CheckLabels, OfAnotherOrderOrNumberMayNot) {
  EXPECT_EQ(problem(job_of_labels({"click", "buy"}), job_of_labels({"buy", "click"})),
            "data.schema.labels: " + directory_.path() +
                "/step-000000000005 predicts [click, buy] in this order, the configuration has "
                "[buy, click]; advice");
  EXPECT_NE(problem(job_of_labels({"click", "buy"}), job_of_labels({"click"})), "");
  EXPECT_NE(problem(small_job(), job_of_labels({"click", "buy"})), "");
}

TEST_F(CheckLabels, TheColumnOfASingleLabelIsNoName) {
  job::JobConfig other = small_job();
  other.data.schema.label.column = "bought";
  EXPECT_EQ(problem(small_job(), other), "");
  EXPECT_EQ(problem(small_job(), job_of_labels({"bought"})), "");
  EXPECT_NE(problem(job_of_labels({"click"}), job_of_labels({"buy"})), "");
}

/// The small checkpoint, used with `config_`.
class CheckPredictions : public testing::Test {
 protected:
  std::string problems() {
    return error_of(ErrorCode::kInvalidConfig, [&] { check_predictions({checkpoint_}, config_); });
  }
  std::string log_of(bool accept) {
    testing::internal::CaptureStderr();
    check_predictions({checkpoint_, accept}, config_);
    return testing::internal::GetCapturedStderr();
  }
  const TemporaryDirectory directory_;
  const std::string checkpoint_ = publish(directory_.path(), small_content(5));
  job::JobConfig config_ = small_job();
};

TEST_F(CheckPredictions, NeedTheConfigurationThatWasTrained) {
  EXPECT_EQ(problems(), "");
  EXPECT_EQ(log_of(false), "");
}

TEST_F(CheckPredictions, WhatOnlyTrainingNeedsMayChange) {
  config_.train.max_steps = 12;
  config_.run_dir = "runs/other";
  config_.data.eval.path = {"other.tsv"};
  config_.data.batch_size = 77;
  config_.dense_optimizer.lr = 0.5;
  config_.model.dropout = 0.5;
  EXPECT_EQ(problems(), "");
  EXPECT_EQ(log_of(false), "");
}

TEST_F(CheckPredictions, EveryChangeOfWhatIsComputedIsToldAtOnce) {
  config_.seed = 5;
  config_.tables["default"].init.scale = 0.5;
  config_.model.top = {17};
  EXPECT_THAT(problems(),
              AllOf(HasSubstr(checkpoint_ + " was trained with another seed: 1 -> 5 (it gives ids "
                                            "without a row their weights); undo the change, or "
                                            "accept other predictions with "
                                            "--accept-changed-config"),
                    HasSubstr("init.scale: "), HasSubstr("another model.top: [2] -> [17]")));
}

TEST_F(CheckPredictions, OfAChangedConfigurationCanBeAccepted) {
  config_.seed = 5;
  EXPECT_THAT(log_of(true),
              HasSubstr("warning changed since the checkpoint was trained: seed: 1 -> 5"));
}

TEST_F(CheckPredictions, AnotherMeaningOfTheLabelIsLogged) {
  config_.data.schema.label.threshold = {3};
  EXPECT_THAT(log_of(false), HasSubstr("changed: data.schema.label.threshold: [] -> [3]"));
}

TEST_F(CheckPredictions, AnotherMeaningOfFieldsIsAcceptedOnlyIfAsked) {
  config_.data.schema.missing = {"NULL"};
  EXPECT_THAT(problems(), HasSubstr("data.schema.missing: [] -> [NULL]"));
  EXPECT_THAT(log_of(true), HasSubstr("data.schema.missing: [] -> [NULL]"));
}

TEST(WithBatchSize, LeavesRowsOutRatherThanTrainingOnThemTwice) {
  EXPECT_EQ(with_batch_size({.batches = 7}, 100, 100).batches, 7);
  EXPECT_EQ(with_batch_size({.batches = 7}, 100, 50).batches, 14);
  EXPECT_EQ(with_batch_size({.batches = 7}, 100, 300).batches, 3);
  EXPECT_EQ(with_batch_size({.batches = 0}, 100, 300).batches, 0);
}

}  // namespace
}  // namespace satrap::checkpoint
