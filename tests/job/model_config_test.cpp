#include "satrap/job/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Config>
std::string error_of(const Config& config) {
  try {
    config.validate();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "valid";
}

TEST(ModelConfig, DefaultsAreValidForEveryType) {
  for (const char* type : {"logistic", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "ffnn"}) {
    EXPECT_EQ(error_of(ModelConfig{.type = type}), "valid") << type;
  }
  EXPECT_EQ(error_of(ModelConfig{.type = "din", .attend = {{"history", "item"}}}), "valid");
}

TEST(ModelConfig, DinNeedsAnAttention) {
  EXPECT_THAT(error_of(ModelConfig{.type = "din"}), HasSubstr("model.attend"));
}

TEST(ModelConfig, RefusesAFieldTheModelDoesNotUse) {
  EXPECT_THAT(error_of(ModelConfig{.type = "dlrm", .hidden = {8}}),
              AllOf(HasSubstr("model.hidden"), HasSubstr("'dlrm'"), HasSubstr("deepfm, dcn_v2")));
  EXPECT_THAT(error_of(ModelConfig{.type = "deepfm", .top = {8}}), HasSubstr("model.top"));
  EXPECT_THAT(error_of(ModelConfig{.type = "deepfm", .bottom = {8}}), HasSubstr("model.bottom"));
  EXPECT_THAT(error_of(ModelConfig{.type = "fm", .hidden = {8}}), HasSubstr("model.hidden"));
  EXPECT_THAT(error_of(ModelConfig{.type = "fm", .dropout = 0.1}), HasSubstr("model.dropout"));
  EXPECT_THAT(error_of(ModelConfig{.type = "ffnn", .attention = {8}}),
              HasSubstr("model.attention"));
  EXPECT_THAT(error_of(ModelConfig{.type = "dcn_v2", .attend = {{"history", "item"}}}),
              HasSubstr("model.attend"));
  EXPECT_THAT(error_of(ModelConfig{.type = "dlrm", .sparse = {8}}), HasSubstr("model.sparse"));
  EXPECT_THAT(error_of(ModelConfig{.type = "ffnn", .cross_layers = 2}),
              HasSubstr("model.cross_layers"));
  EXPECT_THAT(error_of(ModelConfig{.type = "dlrm", .activation = "none"}),
              HasSubstr("model.activation"));
  EXPECT_THAT(error_of(ModelConfig{.type = "dlrm", .batch_norm = true}),
              HasSubstr("model.batch_norm"));
  EXPECT_THAT(error_of(ModelConfig{.type = "logistic", .dropout = 0.1}),
              HasSubstr("model.dropout"));
}

TEST(ModelConfig, RefusesDropoutWithoutActivation) {
  EXPECT_THAT(error_of(ModelConfig{.type = "ffnn", .activation = "none", .dropout = 0.1}),
              HasSubstr("model.dropout"));
}

TEST(ModelConfig, KnowsWhichModelsNeedAFirstOrderWeight) {
  for (const char* type : {"fm", "wide_deep", "deepfm"}) {
    EXPECT_TRUE(needs_first_order(type)) << type;
  }
  EXPECT_FALSE(needs_first_order("dlrm"));
  EXPECT_TRUE(needs_dim_one("logistic"));
  EXPECT_FALSE(needs_dim_one("deepfm"));
}

TEST(DenseOptimizerConfig, RefusesAFieldTheOptimizerDoesNotUse) {
  EXPECT_EQ(error_of(DenseOptimizerConfig{.type = "sgd", .momentum = 0.9}), "valid");
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = "adam", .momentum = 0.9}),
              HasSubstr("dense_optimizer.momentum"));
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = "sgd", .beta1 = 0.8}),
              HasSubstr("dense_optimizer.beta1"));
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = "adagrad", .beta2 = 0.8}),
              HasSubstr("dense_optimizer.beta2"));
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = "sgd", .eps = 1e-4}),
              HasSubstr("dense_optimizer.eps"));
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = "adam", .initial_accumulator = 0.1}),
              HasSubstr("dense_optimizer.initial_accumulator"));
}

TEST(DenseOptimizerConfig, RefusesADecayOfOne) {
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = "sgd", .momentum = 1.0}), HasSubstr("below 1"));
}

TEST(DenseOptimizerConfig, NamesTheScheduleInItsErrors) {
  DenseOptimizerConfig config;
  config.schedule.decay = "cosine";
  EXPECT_THAT(error_of(config), HasSubstr("dense_optimizer.schedule"));
}

}  // namespace
}  // namespace satrap::job
