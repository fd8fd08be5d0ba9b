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
  using enum ModelType;
  for (const ModelType type : {kLogistic, kFm, kWideDeep, kDeepFm, kDcnV2, kDlrm, kFfnn}) {
    EXPECT_EQ(error_of(ModelConfig{.type = type}), "valid") << word_of(type, kModelTypes);
  }
  EXPECT_EQ(error_of(ModelConfig{.type = ModelType::kDin, .attend = {{"history", "item"}}}),
            "valid");
}

TEST(ModelConfig, DinNeedsAnAttention) {
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDin}), HasSubstr("model.attend"));
}

TEST(ModelConfig, RefusesAFieldTheModelDoesNotUse) {
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDlrm, .hidden = {8}}),
              AllOf(HasSubstr("model.hidden"), HasSubstr("'dlrm'"), HasSubstr("deepfm, dcn_v2")));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDeepFm, .top = {8}}),
              HasSubstr("model.top"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDeepFm, .bottom = {8}}),
              HasSubstr("model.bottom"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kFm, .hidden = {8}}),
              HasSubstr("model.hidden"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kFm, .dropout = 0.1}),
              HasSubstr("model.dropout"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kFfnn, .attention = {8}}),
              HasSubstr("model.attention"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDcnV2, .attend = {{"history", "item"}}}),
              HasSubstr("model.attend"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDlrm, .sparse = {8}}),
              HasSubstr("model.sparse"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kFfnn, .cross_layers = 2}),
              HasSubstr("model.cross_layers"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDlrm, .activation = Activation::kNone}),
              HasSubstr("model.activation"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDlrm, .batch_norm = true}),
              HasSubstr("model.batch_norm"));
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kLogistic, .dropout = 0.1}),
              HasSubstr("model.dropout"));
}

ModelConfig with(const HeadsConfig& heads) { return {.type = ModelType::kDcnV2, .heads = heads}; }

TEST(ModelConfig, RefusesExpertsThatCannotBe) {
  using enum HeadsType;
  for (const HeadsType type : {kSharedBottom, kMmoe, kPle}) {
    EXPECT_EQ(error_of(with({.type = type})), "valid") << word_of(type, kHeadsTypes);
  }
  EXPECT_THAT(error_of(ModelConfig{.type = ModelType::kDeepFm, .heads = {.type = kMmoe}}),
              AllOf(HasSubstr("model.heads"), HasSubstr("'deepfm'")));
  EXPECT_THAT(error_of(with({.experts = 3})),
              AllOf(HasSubstr("model.heads.experts"), HasSubstr("'shared_bottom'")));
  EXPECT_THAT(error_of(with({.layers = {8}})), HasSubstr("model.heads.layers"));
  EXPECT_THAT(error_of(with({.type = kMmoe, .experts_per_label = 2})),
              AllOf(HasSubstr("model.heads.experts_per_label"), HasSubstr("only by ple")));
  EXPECT_THAT(error_of(with({.type = kMmoe, .levels = 2})), HasSubstr("model.heads.levels"));
  EXPECT_THAT(error_of(with({.type = kMmoe, .experts = 1})), HasSubstr("two experts"));
  EXPECT_EQ(error_of(with({.type = kPle, .experts = 1})), "valid");
  EXPECT_THAT(error_of(with({.type = kPle, .layers = {}})), HasSubstr("model.heads.layers"));
}

TEST(ModelConfig, RefusesDropoutWithoutActivation) {
  EXPECT_THAT(error_of(ModelConfig{
                  .type = ModelType::kFfnn, .activation = Activation::kNone, .dropout = 0.1}),
              HasSubstr("model.dropout"));
}

TEST(ModelConfig, KnowsWhichModelsNeedAFirstOrderWeight) {
  using enum ModelType;
  for (const ModelType type : {kFm, kWideDeep, kDeepFm}) {
    EXPECT_TRUE(needs_first_order(type)) << word_of(type, kModelTypes);
  }
  EXPECT_FALSE(needs_first_order(kDlrm));
  EXPECT_TRUE(needs_dim_one(kLogistic));
  EXPECT_FALSE(needs_dim_one(kDeepFm));
}

TEST(ModelConfig, ItsWidestLayerIsOneThatItUses) {
  using enum ModelType;
  const std::vector<std::pair<ModelType, std::int64_t>> cases = {
      {kLogistic, 0}, {kFm, 0},     {kWideDeep, 400}, {kDeepFm, 400},   {kDcnV2, 400},
      {kDlrm, 512},   {kFfnn, 512}, {kDin, 512},      {kTorchScript, 0}};
  for (const auto& [type, width] : cases) {
    ModelConfig model;
    model.type = type;
    EXPECT_EQ(model.widest_layer(), width) << word_of(type, kModelTypes);
    model.head = {600};
    EXPECT_EQ(model.widest_layer(), 600);
    model.heads.layers = {700};
    EXPECT_EQ(model.widest_layer(), 600);
    model.heads.type = HeadsType::kMmoe;
    EXPECT_EQ(model.widest_layer(), 700);
  }
}

TEST(DenseOptimizerConfig, RefusesAFieldTheOptimizerDoesNotUse) {
  EXPECT_EQ(error_of(DenseOptimizerConfig{.type = DenseOptimizerType::kSgd, .momentum = 0.9}),
            "valid");
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = DenseOptimizerType::kAdam, .momentum = 0.9}),
              HasSubstr("dense_optimizer.momentum"));
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = DenseOptimizerType::kSgd, .beta1 = 0.8}),
              HasSubstr("dense_optimizer.beta1"));
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = DenseOptimizerType::kAdagrad, .beta2 = 0.8}),
              HasSubstr("dense_optimizer.beta2"));
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = DenseOptimizerType::kSgd, .eps = 1e-4}),
              HasSubstr("dense_optimizer.eps"));
  EXPECT_THAT(
      error_of(DenseOptimizerConfig{.type = DenseOptimizerType::kAdam, .initial_accumulator = 0.1}),
      HasSubstr("dense_optimizer.initial_accumulator"));
}

TEST(DenseOptimizerConfig, RefusesADecayOfOne) {
  EXPECT_THAT(error_of(DenseOptimizerConfig{.type = DenseOptimizerType::kSgd, .momentum = 1.0}),
              HasSubstr("below 1"));
}

TEST(DenseOptimizerConfig, NamesTheScheduleInItsErrors) {
  DenseOptimizerConfig config;
  config.schedule.decay = RateDecay::kCosine;
  EXPECT_THAT(error_of(config), HasSubstr("dense_optimizer.schedule"));
}

}  // namespace
}  // namespace satrap::job
