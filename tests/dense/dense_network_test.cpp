#include "satrap/dense/dense_network.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/dense/network_fixture.h"

namespace satrap::dense {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::int64_t num_threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(DenseNetwork, StartsNoThreadOfItsOwn) {
  ThreadPool pool(2);
  const std::int64_t before = num_threads_of_process();
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const ModelCase c{"", {.type = job::ModelType::kDlrm}, {13, std::vector<std::int64_t>(26, 16)}};
    const auto network = make_network(c, pool, {}, precision);
    Batch batch(c.shape, 2048, 1);
    batch.run(*network);
    network->apply(1);
    EXPECT_EQ(num_threads_of_process(), before);
  }
}

TEST(DenseNetwork, ParametersOfLinearLayersStartWithinTheBoundOfPyTorch) {
  ThreadPool pool(1);
  const ModelCase c{"", {.type = job::ModelType::kDeepFm, .hidden = {100}}, {0, {2, 2, 2, 2}}};
  const auto network = make_network(c, pool);
  const auto weight = network->save()[0];
  EXPECT_EQ(weight.name, "deep.0.weight");
  EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{100, 4}));
  const auto [low, high] = std::ranges::minmax(weight.values);
  EXPECT_GE(low, -0.5F);
  EXPECT_LT(high, 0.5F);
  EXPECT_LT(low, -0.45F);
  EXPECT_GT(high, 0.45F);
}

TEST(DenseNetwork, NamesItsStateInOrder) {
  ThreadPool pool(1);
  const ModelCase c{"", {.type = job::ModelType::kDlrm, .bottom = {6}, .top = {5}}, {3, {4, 4}}};
  const auto network = make_network(c, pool, optimizer_of(DenseOptimizerType::kAdam, 0.1));
  std::vector<std::string> names;
  std::int64_t size = 0;
  for (const auto& tensor : network->save()) {
    names.push_back(tensor.name);
    if (!tensor.name.starts_with("adam")) size += std::ssize(tensor.values);
  }
  // bottom 3-6-4, top [4 + 3 products]-5-1
  EXPECT_THAT(names,
              testing::ElementsAre("bottom.0.weight", "bottom.0.bias", "bottom.1.weight",
                                   "bottom.1.bias", "top.0.weight", "top.0.bias", "top.1.weight",
                                   "top.1.bias", "adam.step", "adam.exp_avg", "adam.exp_avg_sq"));
  EXPECT_EQ(size, network->num_parameters());
  EXPECT_EQ(size, 6 * 3 + 6 + 4 * 6 + 4 + 5 * 7 + 5 + 5 + 1);
}

TEST(DenseNetwork, AppendsNoBottomLayerIfTheLastHasTheWidthOfAnEmbedding) {
  ThreadPool pool(1);
  const auto network = make_network(
      {"", {.type = job::ModelType::kDlrm, .bottom = {6, 4}, .top = {}}, {3, {4}}}, pool);
  EXPECT_EQ(network->num_parameters(), 6 * 3 + 6 + 4 * 6 + 4 + (4 + 1) + 1);
}

TEST(DenseNetwork, WorksWithoutNumericColumns) {
  ThreadPool pool(1);
  for (ModelCase c : all_models()) {
    c.shape.num_numeric = 0;
    for (InputShape::Sequence& sequence : c.shape.sequences) {  // only masks
      sequence.mask_column = c.shape.num_numeric;
      c.shape.num_numeric += sequence.length;
    }
    const auto network = make_network(c, pool);
    Batch batch(c.shape, 20, 1);
    EXPECT_TRUE(batch.run(*network).finite) << c.name;
  }
}

TEST(DenseNetwork, WorksWithoutFeaturesWhereTheModelCan) {
  ThreadPool pool(1);
  for (ModelCase c : all_models()) {
    c.shape.field_widths.clear();
    c.shape.field_names.clear();
    c.shape.sequences.clear();
    if (c.model.type == job::ModelType::kDlrm || c.model.type == job::ModelType::kDin ||
        job::needs_first_order(c.model.type)) {
      EXPECT_THROW(make_network(c, pool), Error) << c.name;
      continue;
    }
    const auto network = make_network(c, pool);
    Batch batch(c.shape, 20, 1);
    EXPECT_TRUE(batch.run(*network).finite) << c.name;
  }
}

TEST(DenseNetwork, RefusesShapesTheModelCannotTake) {
  ThreadPool pool(1);
  using enum job::ModelType;
  const auto message = [&](job::ModelType type, const InputShape& shape) {
    try {
      make_network({"", {.type = type}, shape}, pool);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message(kDlrm, {2, {8, 8, 4}}), HasSubstr("field 2 is 4"));
  EXPECT_THAT(message(kDeepFm, {2, {8, 9}}), HasSubstr("field 1 is 8"));
  EXPECT_THAT(message(kDeepFm, {2, {1, 1}}), HasSubstr("at least one factor"));
  EXPECT_THAT(message(kLogistic, {2, {2, 2}}), HasSubstr("dim 1, got 2"));
  EXPECT_THAT(message(kDlrm, {0, {4}}), HasSubstr("two vectors"));
  EXPECT_THAT(message(kDlrm, {2, {}}), HasSubstr("at least one categorical"));
  EXPECT_THAT(message(kFfnn, {0, {}}), HasSubstr("no input"));
}

TEST(DenseNetwork, ChecksTheSizesOfABatch) {
  ThreadPool pool(1);
  const ModelCase c{"", {.type = job::ModelType::kLogistic}, {2, {1}}};
  const auto network = make_network(c, pool);
  const auto broken = [&](auto change) {
    Batch batch(c.shape, 3, 1);
    change(batch);
    batch.run(*network);
  };
  EXPECT_THROW(broken([](Batch& b) { b.numeric.pop_back(); }), Error);
  EXPECT_THROW(broken([](Batch& b) { b.pooled.pop_back(); }), Error);
  EXPECT_THROW(broken([](Batch& b) { b.labels.pop_back(); }), Error);
  EXPECT_THROW(broken([](Batch& b) { b.grad_pooled.pop_back(); }), Error);
  EXPECT_THROW(broken([](Batch& b) { b = Batch({2, {1}}, 0, 1); }), Error);
}

TEST(Dropout, DependsOnTheStepAndNotOnThreadsAndIsOffInPrediction) {
  ModelCase c = model_named("deepfm");
  c.model.dropout = 0.5;
  const auto run = [&](std::int64_t threads, std::int64_t step) {
    ThreadPool pool(threads);
    const auto network = make_network(c, pool);
    Batch batch(c.shape, 1300, 1);
    batch.run(*network, step);
    return batch.probabilities;
  };
  EXPECT_EQ(run(1, 1), run(2, 1));
  EXPECT_NE(run(1, 1), run(1, 2));

  ThreadPool pool(1);
  const auto with = make_network(c, pool);
  c.model.dropout = 0.0;
  const auto without = make_network(c, pool);
  Batch a(c.shape, 100, 1), b(c.shape, 100, 1);
  a.predict(*with);
  b.predict(*without);
  EXPECT_EQ(a.probabilities, b.probabilities);
}

TEST(BatchNorm, RunningStatisticsFollowAppliedBatchesOnly) {
  ThreadPool pool(1);
  const ModelCase c{"",
                    {.type = job::ModelType::kFfnn,
                     .bottom = {1},
                     .sparse = {},
                     .top = {},
                     .activation = job::Activation::kNone,
                     .batch_norm = true},
                    {1, {}}};
  const auto network = make_network(c, pool);
  const auto value = [&](const std::string& name) { return snapshot(*network).at(name).at(0); };
  DenseNetwork::State state = network->save();
  for (auto& tensor : state) {
    if (tensor.name == "bottom.0.weight") tensor.values[0] = 1.0F;
    if (tensor.name == "bottom.0.bias") tensor.values[0] = 0.0F;
  }
  network->load(state);
  Batch batch(c.shape, 2, 1);
  batch.numeric = {1.0F, 3.0F};  // mean 2, unbiased variance 2
  batch.run(*network);
  EXPECT_EQ(value("bottom.0.batch_norm.running_mean"), 0.0F);
  network->apply(1);
  EXPECT_FLOAT_EQ(value("bottom.0.batch_norm.running_mean"), 0.2F);
  EXPECT_FLOAT_EQ(value("bottom.0.batch_norm.running_var"), 0.9F + 0.2F);

  const float variance = value("bottom.0.batch_norm.running_var");
  Batch single(c.shape, 1, 1);
  EXPECT_TRUE(single.run(*network).finite);
  network->apply(2);
  EXPECT_EQ(value("bottom.0.batch_norm.running_var"), variance);
}

TEST(BatchNorm, SurvivesAPredictionBetweenGradientAndUpdate) {
  ThreadPool pool(1);
  const ModelCase c = model_named("ffnn_batch_norm");
  const auto plain = make_network(c, pool), interrupted = make_network(c, pool);
  Batch batch(c.shape, 20, 1), large(c.shape, 600, 2);
  batch.run(*plain);
  plain->apply(1);
  batch.run(*interrupted);
  large.predict(*interrupted);
  interrupted->apply(1);
  EXPECT_EQ(snapshot(*plain), snapshot(*interrupted));
}

TEST(DenseNetwork, RefusesAStateOfAnotherNetwork) {
  ThreadPool pool(1);
  const auto small = make_network(model_named("deepfm"), pool);
  ModelCase wide = model_named("deepfm");
  wide.model.hidden = {25, 16};
  const DenseNetwork::State state = make_network(wide, pool)->save();
  const Snapshot before = snapshot(*small);
  EXPECT_THAT([&] { small->load(state); },
              testing::ThrowsMessage<Error>(HasSubstr("deep.0.weight: ")));
  EXPECT_THROW(small->load({}), Error);
  EXPECT_THROW(small->load_parameters(std::vector<float>(3)), Error);
  EXPECT_EQ(snapshot(*small), before);
}

TEST(DenseNetwork, RefusesAMatrixOfAnotherShapeTypeOrPlace) {
  ThreadPool pool(1);
  const ModelCase c = model_named("deepfm");
  const auto network = make_network(c, pool);
  Batch batch(c.shape, 10, 1);
  const auto refuses = [&](const DenseInput& input, const std::string& why) {
    EXPECT_THAT([&] { network->forward_backward(input, batch.output()); },
                testing::ThrowsMessage<Error>(HasSubstr(why)));
  };
  DenseInput input = batch.input();
  --input.numeric.cols;
  refuses(input, "numeric input: 10 rows of 5 values wanted, got 10 of 4");
  input = batch.input();
  input.pooled.type = FloatType::kBf16;
  refuses(input, "pooled input: fp32 wanted");
  input = batch.input();
  input.labels.place = Place::kDevice;
  refuses(input, "labels: is in the memory of a device");
  EXPECT_TRUE(batch.run(*network).finite);
}

TEST(DescribeLibtorch, NamesVersionAndBlas) {
  EXPECT_THAT(describe_libtorch(), testing::AllOf(HasSubstr("libtorch 2."), HasSubstr("CPU")));
}

}  // namespace
}  // namespace satrap::dense
