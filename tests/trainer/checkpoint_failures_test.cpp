// A run outlives checkpoints that cannot be written, up to its limits.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/core/error.h"
#include "satrap/trainer/trainer.h"
#include "tests/trainer/tiny_cluster.h"
#include "tests/trainer/tiny_job.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Checkpoints every 5 steps of 20; those of some steps cannot be written.
class CheckpointFailures : public testing::Test {
 protected:
  job::JobConfig job(const std::string& name) const {
    job::JobConfig config = tiny_job(directory_.path() + "/" + name);
    config.data.synthetic.rows = 64 * 20;
    config.checkpoint.every = "5 steps";
    config.train.report_every = "1 steps";
    return config;
  }

  /// Puts a file where the folder of checkpoints is, before that of `first`, and puts the folder
  /// back at step `mended`, when that of `first` has failed. Another may be under way then: it
  /// finds the file or the folder, and never neither.
  static TrainOptions broken(const job::JobConfig& config,
                             std::int64_t first,
                             std::int64_t mended) {
    const std::string folder = config.run_dir + "/checkpoints", aside = config.run_dir + "/aside";
    TrainOptions options;
    options.on_report = [=](const Report& report) {
      if (report.step != first && report.step != mended) {
        return;
      }
      if (report.step == first) {
        std::ofstream(aside) << "in the way\n";
      }
      ASSERT_EQ(::renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, aside.c_str(), RENAME_EXCHANGE), 0);
    };
    return options;
  }

  static std::string digest_of(const TrainOutcome& outcome) {
    return checkpoint::verify_checkpoint(outcome.last_checkpoint);
  }

  static std::string error_of(const std::function<void()>& run) {
    try {
      run();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      return error.what();
    }
    return "";
  }

  const TemporaryDirectory directory_;
};

TEST_F(CheckpointFailures, ARunGoesOnToTheSameEnd) {
  const std::string expected = digest_of(train(job("whole"), {}));
  const job::JobConfig config = job("broken");
  testing::internal::CaptureStderr();
  const TrainOutcome outcome = train(config, broken(config, 5, 11));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("warning checkpoint of step 5 failed: "),
                    Not(HasSubstr("checkpoint of step 15 failed"))));
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(digest_of(outcome), expected);
}

TEST_F(CheckpointFailures, TheThirdInARowEndsIt) {
  const job::JobConfig config = job("broken");
  EXPECT_THAT(error_of([&] { train(config, broken(config, 5, -1)); }),
              AllOf(HasSubstr("checkpoint of step 15 failed: "),
                    HasSubstr("3 in a row (checkpoint.max_failures)")));
}

TEST_F(CheckpointFailures, TheLastOneMustNotFail) {
  job::JobConfig config = job("broken");
  config.checkpoint.max_failures = 100;
  EXPECT_THAT(error_of([&] { train(config, broken(config, 15, -1)); }),
              HasSubstr("checkpoint of step 20 failed: "));
}

TEST_F(CheckpointFailures, SeveralRanksGoOnTogether) {
  const std::string expected = digest_of(TinyCluster(job("whole"), 2, 2).train());
  const job::JobConfig config = job("broken");
  testing::internal::CaptureStderr();
  const TrainOutcome outcome = TinyCluster(config, 2, 2).train(broken(config, 5, 11));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("warning checkpoint of step 5 failed: "));
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(digest_of(outcome), expected);
}

}  // namespace
}  // namespace satrap::trainer
