#include "satrap/pipeline/load_job.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;

class LoadJob : public testing::Test {
 protected:
  LoadJob() {
    write_file_atomic(path_,
                      "run_dir: runs/a\ndata: {format: synthetic}\n"
                      "tables: {default: {dim: 4}}\n"
                      "model: {type: dlrm, bottom: [8], top: [8]}\n");
  }
  job::JobConfig load(const std::vector<std::string>& overrides = {}) const {
    return load_job(path_, overrides);
  }
  std::string problem(const std::vector<std::string>& overrides) const {
    try {
      load(overrides);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/job.yaml";
};

TEST_F(LoadJob, ReadsAFileWithOverrides) {
  const job::JobConfig config = load({"tables.default.dim=8", "train.precision=fp32"});
  EXPECT_EQ(config.model.type, job::ModelType::kDlrm);
  EXPECT_EQ(config.tables.at("default").dim, 8);
  EXPECT_EQ(config.train.precision, job::Precision::kFp32);
}

TEST_F(LoadJob, AProgramsNetworkTakesThePlaceOfModelAndDenseOptimizer) {
  const job::JobConfig config = load_job_of_program(
      path_, {"dense_optimizer.lr=3", "tables.user.dim=8", "features.C1.table=user"});
  EXPECT_EQ(config.model.type, job::ModelType::kPython);
  EXPECT_EQ(config.dense_optimizer.lr, job::DenseOptimizerConfig().lr);
  EXPECT_EQ(config.train.precision, job::Precision::kFp32);
  EXPECT_FALSE(config.is_on_gpu());
}

/// A variable of the environment, while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

TEST_F(LoadJob, AProgramBesideLoadersReadsFromThem) {
  const Variable loaders("SATRAP_LOADERS", "2");
  try {
    load_job_of_program(path_, {});
    FAIL();
  } catch (const Error& error) {  // this job has nothing to read
    EXPECT_THAT(error.what(), HasSubstr("data.loaders.store=job"));
  }
  EXPECT_FALSE(load_job_of_program(path_, {"data.loaders.store="}).data.loaders.is_on());
  const Variable none("SATRAP_LOADERS", "0");
  EXPECT_FALSE(load_job_of_program(path_, {}).data.loaders.is_on());
}

TEST_F(LoadJob, AProgramBesideShardsHasItsRowsThere) {
  const Variable shards("SATRAP_SHARDS", "2");
  EXPECT_EQ(load_job_of_program(path_, {}).embedding.store, job::StoreKind::kPs);
  EXPECT_EQ(load_job_of_program(path_, {"embedding.store=embedded"}).embedding.store,
            job::StoreKind::kEmbedded);
}

TEST_F(LoadJob, AProgramAloneHasItsRowsInItsProcess) {
  EXPECT_EQ(load_job_of_program(path_, {}).embedding.store, job::StoreKind::kEmbedded);
}

TEST_F(LoadJob, WhatAProgramsNetworkDoesNotGoWithIsRefusedByName) {
  const auto problem_of_program = [this](const std::string& setting) -> std::string {
    try {
      load_job_of_program(path_, {setting});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(problem_of_program("device=cuda"), HasSubstr("device: a network in Python"));
  EXPECT_THAT(problem_of_program("embedding.cache.memory=1MB"),
              HasSubstr("without a cache of rows so far; write 0"));
  EXPECT_THAT(problem_of_program("train.precision=bf16"), HasSubstr("got bf16; leave it out"));
  EXPECT_THAT(problem_of_program("train.warm_start.from=runs/b"), HasSubstr("write dense: false"));
}

TEST_F(LoadJob, ANetworkInPythonIsLeftToTheProgramThatComputesIt) {
  EXPECT_EQ(load({"model=python"}).model.path, "");
  const std::string path = load({"model={type: python, path: net.py:Net}"}).model.path;
  EXPECT_THAT(path, EndsWith("/net.py:Net"));
  EXPECT_TRUE(path.starts_with('/')) << path;
  for (const char* wrong : {"net.py", "net.py:", "net.py:a b", ":Net"}) {
    EXPECT_THAT(problem({std::string("model={type: python, path: '") + wrong + "'}"}),
                HasSubstr("does not name a class or function in its file"))
        << wrong;
  }
  EXPECT_THAT(problem({"model={type: dlrm, path: net.py:Net}"}),
              HasSubstr("only by torchscript, python"));
  EXPECT_THAT(problem({"model=python", "model.engine=graph"}), HasSubstr("model.engine: "));
}

TEST_F(LoadJob, AutoBecomesAPrecisionOfThisMachine) {
  EXPECT_THAT(load({"train.precision=auto"}).train.precision,
              AnyOf(job::Precision::kFp32, job::Precision::kBf16));
}

TEST_F(LoadJob, AModelThatDoesNotFitTheFeaturesIsRefused) {
  EXPECT_THAT(
      problem({"tables.user.dim=8", "features.C1.table=user"}),
      HasSubstr("model 'dlrm' needs tables of one dim: that of 'C1' is 8, that of 'C2' is 4"));
  // Its rows have a first-order weight, which the user has not written.
  EXPECT_THAT(problem({"tables.user.dim=8", "features.C1.table=user", "model=deepfm"}),
              AllOf(HasSubstr("that of 'C1' is 8, that of 'C2' is 4"),
                    HasSubstr("write tables.default.dim alone, or the same dim for each")));
}

TEST_F(LoadJob, WhatTheFileSaysWrongIsRefusedAtItsLine) {
  EXPECT_THAT(problem({"model.typ=dlrm"}), HasSubstr("unknown key"));
  write_file_atomic(path_, "run_dir: runs/a\n\nseed: one\n");
  EXPECT_THAT(problem({}), HasSubstr(path_ + ":3"));
}

TEST_F(LoadJob, AFileThatIsNotThereIsNamed) {
  remove_all(path_);
  EXPECT_THAT(problem({}), HasSubstr(path_));
}

}  // namespace
}  // namespace satrap::pipeline
