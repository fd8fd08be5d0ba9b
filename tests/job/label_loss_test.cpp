#include "satrap/job/label_loss.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/job/read_job.h"
#include "tests/support/temporary_directory.h"

namespace satrap::job {
namespace {

using testing::HasSubstr;

const data::LabelConfig kBinary, kNumber{.type = data::LabelType::kNumber}, kClasses{.classes = 3};

JobConfig job_of(const std::vector<data::LabelConfig>& labels, Loss loss = Loss::kAuto) {
  JobConfig config;
  config.model.loss = loss;
  for (const data::LabelConfig& label : labels) {
    config.data.schema.labels.push_back(
        {.name = "y" + std::to_string(config.data.schema.labels.size()), .source = label});
  }
  return config;
}

std::string refusal_of(const JobConfig& config) {
  try {
    check_losses(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

TEST(LabelLoss, FollowsFromTheLabelUnlessTheModelSaysIt) {
  EXPECT_EQ(loss_of({}, kBinary), Loss::kBce);
  EXPECT_EQ(loss_of({}, kNumber), Loss::kMse);
  EXPECT_EQ(loss_of({}, kClasses), Loss::kSoftmax);
  EXPECT_EQ(loss_of({.loss = Loss::kMse}, kBinary), Loss::kMse);
  EXPECT_EQ(first_loss({}), Loss::kBce);
  EXPECT_EQ(first_loss(job_of({kNumber, kBinary})), Loss::kMse);
  JobConfig one;
  one.data.schema.label = kClasses;
  EXPECT_EQ(first_loss(one), Loss::kSoftmax);
}

TEST(LabelLoss, GoesWithLabelsOfItsKind) {
  EXPECT_EQ(refusal_of(job_of({kBinary, kNumber})), "");
  EXPECT_EQ(refusal_of(job_of({kBinary, kNumber}, Loss::kMse)), "");
  EXPECT_EQ(refusal_of(job_of({kBinary}, Loss::kBce)), "");
  EXPECT_EQ(refusal_of(job_of({kClasses}, Loss::kSoftmax)), "");
  EXPECT_EQ(refusal_of(job_of({kBinary, kNumber}, Loss::kBce)),
            "model.loss: bce needs labels of 0 and 1, and label 'y1' is a number; write auto, or "
            "leave it out");
  EXPECT_EQ(refusal_of(job_of({kClasses}, Loss::kMse)),
            "model.loss: mse needs numbers, or 0 and 1, and label 'y0' is one of several classes; "
            "write auto, or leave it out");
  EXPECT_EQ(refusal_of(job_of({kBinary}, Loss::kSoftmax)),
            "model.loss: softmax needs a label with `classes`, and label 'y0' is 0 or 1; write "
            "auto, or leave it out");
}

TEST(LabelLoss, WhatNeedsProbabilitiesOf0And1IsRefusedWithoutThem) {
  JobConfig fewer = job_of({kBinary, kNumber});
  fewer.data.train.negatives = 0.5;
  EXPECT_THAT(refusal_of(fewer), HasSubstr("data.train.negatives: leaves out negatives"));
  fewer.data.train.negatives = 1.0;
  fewer.data.train.negatives_in_files = 0.5;
  EXPECT_THAT(refusal_of(fewer), HasSubstr("data.train.negatives_in_files: "));
  fewer = job_of({kBinary}, Loss::kMse);
  fewer.data.train.negatives = 0.5;
  EXPECT_THAT(refusal_of(fewer), HasSubstr("it needs loss bce; write 1"));
  JobConfig grouped = job_of({kNumber});
  grouped.data.group_by = "user";
  EXPECT_THAT(refusal_of(grouped), HasSubstr("data.group_by: the metrics within groups"));
  grouped = job_of({kNumber, kBinary});
  grouped.data.group_by = "user";
  EXPECT_EQ(refusal_of(grouped), "");
  JobConfig expecting = job_of({kNumber});
  expecting.train.expect.auc = {0.5, 1.0};
  EXPECT_THAT(refusal_of(expecting), HasSubstr("train.expect.auc: the first label has no AUC"));
}

TEST(LabelLoss, EarlyStoppingNeedsAMetricOfTheFirstLabel) {
  JobConfig config = job_of({kNumber, kBinary});
  config.train.early_stopping = {.metric = StoppingMetric::kAuc, .patience = 2};
  EXPECT_EQ(refusal_of(config),
            "train.early_stopping.metric: a label with loss mse has no auc, but rmse, mae");
  for (const auto& [word, metric] : kStoppingMetrics) {
    for (const auto& [labels, loss] :
         {std::pair{kBinary, Loss::kBce}, std::pair{kNumber, Loss::kMse},
          std::pair{kClasses, Loss::kSoftmax}}) {
      JobConfig job = job_of({labels});
      job.train.early_stopping = {.metric = metric, .patience = 2};
      EXPECT_EQ(refusal_of(job).empty(), has_metric(loss, metric)) << word;
    }
  }
  for (const Loss loss : {Loss::kBce, Loss::kMse, Loss::kSoftmax}) {
    EXPECT_TRUE(has_metric(loss, default_metric(loss)));
  }
}

TEST(LabelLoss, TheMetricOfEarlyStoppingFollowsUnlessItIsWritten) {
  TemporaryDirectory folder;
  const auto read = [&](const std::string& more) {
    const std::string path = folder.path() + "/job.yaml";
    write_file_atomic(path,
                      "run_dir: run\ntables: {default: {dim: 4}}\nmodel: {type: dlrm}\n"
                      "data:\n  schema: {label: {column: y, type: number}, features: [f]}\n"
                      "  train: rows.csv\n  eval: rows.csv\n" +
                          more);
    ConfigOrigins origins;
    return read_job(path, {}, origins).train.early_stopping.metric;
  };
  EXPECT_EQ(read(""), StoppingMetric::kRmse);
  EXPECT_EQ(read("train: {eval_every: 1 epoch, early_stopping: {patience: 2}}\n"),
            StoppingMetric::kRmse);
  EXPECT_EQ(read("train: {eval_every: 1 epoch, early_stopping: {patience: 2, metric: mae}}\n"),
            StoppingMetric::kMae);
  EXPECT_THROW(read("train: {eval_every: 1 epoch, early_stopping: {patience: 2, metric: auc}}\n"),
               Error);
}

}  // namespace
}  // namespace satrap::job
