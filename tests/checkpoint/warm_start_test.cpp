#include "satrap/checkpoint/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "tests/checkpoint/small_checkpoint.h"
#include "tests/checkpoint/small_model.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A job that starts from a checkpoint of the small job at its step 5, with two rows.
class SmallWarmStart : public testing::Test {
 protected:
  SmallWarmStart() {
    SmallModel small;
    auto content = small.content(5);
    content->rows = std::make_unique<SmallSnapshot>(std::vector<SmallRow>{{7, 0.5F}, {8, 1.5F}});
    for (float& value : content->dense.front().values) value = 0.125F;
    from_ = publish(directory_.path() + "/from", std::move(content));
  }

  /// A checkpoint of the new job before its first step.
  std::string start() {
    SmallModel small(config_);
    const WarmStart warm_start(config_, from_, small.model());
    tables_ = warm_start.tables();
    warm_start.load(small.model());
    return publish(directory_.path() + "/started", small.content(0));
  }
  std::string problems() {
    SmallModel small(config_);
    return error_of(ErrorCode::kInvalidConfig, [&] { WarmStart(config_, from_, small.model()); });
  }
  std::string file(const std::string& checkpoint, const char* name) {
    return read_file(checkpoint + "/" + name);
  }

  const TemporaryDirectory directory_;
  job::JobConfig config_ = small_job();
  std::string from_;
  std::vector<std::string> tables_;
};

TEST_F(SmallWarmStart, TakesRowsAndTheNetwork) {
  const std::string at = start();
  EXPECT_THAT(tables_, ElementsAre("user"));
  EXPECT_EQ(Manifest::read(at).tables[0].rows, 2);
  EXPECT_EQ(file(at, "dense.bin"), file(from_, "dense.bin"));
}

TEST_F(SmallWarmStart, TakesNoTableThatWasNotAskedFor) {
  config_.train.warm_start.tables = {};
  const std::string at = start();
  EXPECT_TRUE(tables_.empty());
  EXPECT_EQ(Manifest::read(at).tables[0].rows, 0);
  EXPECT_EQ(file(at, "dense.bin"), file(from_, "dense.bin"));
}

TEST_F(SmallWarmStart, ATableThatTwoPatternsNameIsTakenOnce) {
  config_.train.warm_start.tables = {"*", "user", "us?r"};
  EXPECT_EQ(Manifest::read(start()).tables[0].rows, 2);
  EXPECT_THAT(tables_, ElementsAre("user"));
}

TEST_F(SmallWarmStart, LeavesTheNetworkIfItIsNotAskedFor) {
  config_.train.warm_start.dense = false;
  EXPECT_NE(file(start(), "dense.bin"), file(from_, "dense.bin"));
}

TEST_F(SmallWarmStart, WithoutOptimizerStateLeavesThatOfTheNetworkFresh) {
  config_.train.warm_start.optimizer_state = job::OptimizerState::kReset;
  config_.dense_optimizer.type = DenseOptimizerType::kSgd;
  config_.tables["default"].optimizer.type = RowOptimizerType::kAdagrad;
  const std::string at = start();
  const Manifest manifest = Manifest::read(at);
  EXPECT_EQ(manifest.tables[0].optimizer, "adagrad");
  EXPECT_EQ(manifest.tables[0].rows, 2);
  const auto size = static_cast<std::size_t>(manifest.dense.front().size());
  const std::vector<float> values = read_dense(at, manifest);
  EXPECT_EQ(std::vector(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(size)),
            std::vector<float>(size, 0.125F));
}

TEST_F(SmallWarmStart, EveryPatternThatNamesNothingIsTold) {
  config_.train.warm_start.tables = {"item", "user", "x*"};
  EXPECT_EQ(problems(), "train.warm_start.tables: 'item' is not a table of " + from_ +
                            ", which has: user\ntrain.warm_start.tables: 'x*' is not a table of " +
                            from_ + ", which has: user\n");
}

TEST_F(SmallWarmStart, ATableThatDoesNotFitIsToldWithBothSides) {
  config_.tables["default"].dim = 8;
  EXPECT_THAT(problems(), HasSubstr("has rows of 4 weights, that of the configuration of 8"));
  config_ = small_job();
  config_.tables["default"].weights = FloatType::kBf16;
  EXPECT_THAT(problems(), HasSubstr("has weights in fp32, that of the configuration in bf16"));
  config_ = small_job();
  config_.tables["default"].optimizer.type = RowOptimizerType::kAdam;
  EXPECT_THAT(problems(), AllOf(HasSubstr("was trained with optimizer sgd"),
                                HasSubstr("optimizer_state: reset takes only the weights")));
  config_ = small_job();
  config_.features["user"].table = "people";
  EXPECT_THAT(problems(), HasSubstr("is not a table of the configuration, which has: people"));
}

TEST_F(SmallWarmStart, ANetworkThatDoesNotFitIsToldWithBothShapes) {
  config_.model.top = {3};
  SmallModel small(config_);
  const WarmStart warm_start(config_, from_, small.model());
  EXPECT_THAT(error_of(ErrorCode::kInvalidConfig, [&] { warm_start.load(small.model()); }),
              AllOf(HasSubstr("train.warm_start.dense: " + from_), HasSubstr("[2"), HasSubstr("[3"),
                    HasSubstr("false takes only rows")));
}

TEST_F(SmallWarmStart, ADamagedCheckpointIsRefused) {
  flip_a_bit(from_ + "/table-0.bin");
  SmallModel small(config_);
  const WarmStart warm_start(config_, from_, small.model());
  EXPECT_THAT(error_of(ErrorCode::kCorrupt, [&] { warm_start.load(small.model()); }),
              HasSubstr("table-0.bin"));
}

}  // namespace
}  // namespace satrap::checkpoint
