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

class EveryModel : public testing::TestWithParam<ModelCase> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryModel, testing::ValuesIn(all_models()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Labels,
                         EveryModel,
                         testing::ValuesIn(models_of_several_labels()),
                         name_of_case);

// Without batch normalisation.
std::vector<ModelCase> of_independent_rows(std::vector<ModelCase> models) {
  std::erase_if(models, [](const ModelCase& c) { return c.model.batch_norm; });
  return models;
}

class ModelOfIndependentRows : public testing::TestWithParam<ModelCase> {};
INSTANTIATE_TEST_SUITE_P(Models,
                         ModelOfIndependentRows,
                         testing::ValuesIn(of_independent_rows(all_models())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Labels,
                         ModelOfIndependentRows,
                         testing::ValuesIn(of_independent_rows(models_of_several_labels())),
                         name_of_case);

// Everything a few steps leave behind, outputs included. 1300 rows: three pieces, the last one
// part.
Snapshot train(const ModelCase& c, std::int64_t num_threads) {
  ThreadPool pool(num_threads);
  const auto network = make_network(c, pool, optimizer_of("adam", 0.01));
  Snapshot result;
  for (std::int64_t step = 1; step <= 3; ++step) {
    Batch batch(c.shape, 1300, static_cast<std::uint64_t>(step));
    result["loss"].push_back(static_cast<float>(batch.run(*network, step).loss));
    network->apply(step);
    result["probabilities"] = batch.probabilities;
    result["grad_pooled"] = batch.grad_pooled;
  }
  result.merge(snapshot(*network));
  return result;
}

TEST_P(EveryModel, GivesTheSameBitsWithOneAndTwoAndFiveThreads) {
  const Snapshot one = train(GetParam(), 1);
  EXPECT_EQ(one, train(GetParam(), 2));
  EXPECT_EQ(one, train(GetParam(), 5));
}

TEST_P(EveryModel, GivesTheSameBitsWhereverTheInputLies) {
  ThreadPool pool(1);
  const auto network = make_network(GetParam(), pool);
  Batch batch(GetParam().shape, 600, 1);
  batch.run(*network);
  const std::vector<float> gradient(network->gradient().begin(), network->gradient().end());
  for (const std::size_t offset : {1U, 2U, 5U, 8U}) {
    const auto shifted = [&](std::vector<float> values) {
      values.insert(values.begin(), offset, 0.0F);
      return values;
    };
    const std::vector<float> numeric = shifted(batch.numeric), pooled = shifted(batch.pooled);
    std::vector<float> probabilities(batch.probabilities.size());
    std::vector<float> grad = shifted(batch.grad_pooled);
    network->forward_backward({600, std::span(numeric).subspan(offset),
                               std::span(pooled).subspan(offset), batch.labels, 1},
                              probabilities, std::span(grad).subspan(offset));
    EXPECT_EQ(probabilities, batch.probabilities);
    EXPECT_EQ(grad, shifted(batch.grad_pooled));
    EXPECT_TRUE(std::ranges::equal(network->gradient(), gradient));
  }
}

TEST_P(EveryModel, LearnsALabelItIsShown) {
  ThreadPool pool(2);
  const auto network = make_network(GetParam(), pool, optimizer_of("adam", 0.02));
  Batch batch(GetParam().shape, 200, 3);
  const auto stride = static_cast<std::size_t>(GetParam().shape.num_numeric);
  const auto num_labels = static_cast<std::size_t>(GetParam().shape.num_labels());
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    batch.labels[i] = batch.numeric[i / num_labels * stride] > 0.0F ? 1.0F : 0.0F;
  }
  double first = 0.0, last = 0.0;
  for (std::int64_t step = 1; step <= 300; ++step) {
    last = batch.run(*network, step).loss;
    if (step == 1) first = last;
    network->apply(step);
  }
  EXPECT_LT(last, 0.6 * first);
}

TEST_P(ModelOfIndependentRows, GradientOfABatchIsTheMeanOverItsParts) {
  ThreadPool pool(1);
  const auto network = make_network(GetParam(), pool);
  Batch whole(GetParam().shape, 1000, 5);
  whole.run(*network);
  std::vector<double> sum(network->gradient().size());
  const std::int64_t numeric = GetParam().shape.num_numeric;
  const std::int64_t width = GetParam().shape.pooled_width();
  for (std::int64_t first = 0; first < 1000; first += 100) {
    const auto part = [&](const std::vector<float>& v, std::int64_t w) {
      return std::vector<float>(v.begin() + first * w, v.begin() + (first + 100) * w);
    };
    Batch small(GetParam().shape, 100, 0);
    small.numeric = part(whole.numeric, numeric);
    small.pooled = part(whole.pooled, width);
    small.labels = part(whole.labels, GetParam().shape.num_labels());
    const DenseResult result =
        network->forward_backward(small.input(), small.probabilities, small.grad_pooled);
    ASSERT_TRUE(result.finite);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += static_cast<double>(network->gradient()[i]) / 10;
    }
  }
  const DenseResult again = whole.run(*network);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    ASSERT_NEAR(network->gradient()[i], sum[i], 1e-5 * again.grad_norm) << i;
  }
}

TEST_P(ModelOfIndependentRows, PredictionsAreTheProbabilitiesOfTraining) {
  ThreadPool pool(2);
  const auto network = make_network(GetParam(), pool);
  Batch batch(GetParam().shape, 600, 1);
  batch.run(*network);
  std::vector<float> predicted(batch.probabilities.size());
  network->predict(batch.input(), predicted);
  EXPECT_EQ(predicted, batch.probabilities);
}

TEST_P(EveryModel, ReportsNotANumberInAnyInputAndGoesOnAfterwards) {
  ThreadPool pool(2);
  const auto network = make_network(GetParam(), pool, optimizer_of("adagrad", 0.01));
  const Snapshot before = snapshot(*network);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity, -infinity}) {
    Batch numeric(GetParam().shape, 600, 1), pooled(GetParam().shape, 600, 1);
    numeric.numeric[1] = bad;
    pooled.pooled.back() = bad;
    EXPECT_FALSE(numeric.run(*network).finite);
    EXPECT_FALSE(pooled.run(*network).finite);
  }
  EXPECT_EQ(snapshot(*network), before);
  Batch good(GetParam().shape, 600, 1);
  EXPECT_TRUE(good.run(*network).finite);
}

TEST_P(EveryModel, ContinuesWithTheSameBitsFromItsState) {
  for (const char* type : {"sgd", "adagrad", "adam", "adamw"}) {
    ThreadPool pool(1);
    job::DenseOptimizerConfig optimizer = optimizer_of(type, 0.05);
    if (optimizer.type == "sgd") optimizer.momentum = 0.9;
    ModelCase c = GetParam();
    if (has_mlp(c) && !c.model.batch_norm) c.model.dropout = 0.2;
    const auto original = make_network(c, pool, optimizer);
    const auto advance = [&](DenseNetwork& network, std::int64_t step) {
      Batch batch(c.shape, 64, static_cast<std::uint64_t>(step));
      batch.run(network, step);
      network.apply(step);
    };
    for (std::int64_t step = 1; step <= 3; ++step) advance(*original, step);
    const auto copy = make_network(c, pool, optimizer);
    restore(*copy, snapshot(*original));
    for (std::int64_t step = 4; step <= 6; ++step) {
      advance(*original, step);
      advance(*copy, step);
    }
    EXPECT_EQ(snapshot(*original), snapshot(*copy)) << type;
  }
}

TEST_P(EveryModel, TakesOneRowAndManyRows) {
  ThreadPool pool(2);
  const auto network = make_network(GetParam(), pool);
  for (const std::int64_t rows : {1, 511, 512, 513, 9001, 2}) {
    Batch batch(GetParam().shape, rows, 1);
    EXPECT_TRUE(batch.run(*network).finite) << rows;
    network->apply(1);
  }
  std::vector<float> nothing;
  network->predict({}, nothing);
}

TEST_P(EveryModel, StartsFromTheSeedAlone) {
  ThreadPool one(1), two(2);
  const auto a = make_network(GetParam(), one), b = make_network(GetParam(), two);
  EXPECT_EQ(snapshot(*a), snapshot(*b));
  const auto other = make_network(GetParam(), one, {}, Precision::kFp32, 8);
  EXPECT_NE(snapshot(*a), snapshot(*other));
}

TEST_P(EveryModel, WithBf16IsNearFp32) {
  ThreadPool pool(1);
  const auto fp32 = make_network(GetParam(), pool);
  const auto bf16 = make_network(GetParam(), pool, {}, Precision::kBf16);
  Batch exact(GetParam().shape, 300, 1), rounded(GetParam().shape, 300, 1);
  const DenseResult a = exact.run(*fp32), b = rounded.run(*bf16);
  EXPECT_TRUE(b.finite);
  double weights = 0.0;
  for (const float weight : GetParam().shape.label_weights) weights += static_cast<double>(weight);
  EXPECT_NEAR(b.loss, a.loss, 5e-3 * weights);
  double distance = 0.0;
  for (std::size_t i = 0; i < fp32->gradient().size(); ++i) {
    const double d = static_cast<double>(fp32->gradient()[i] - bf16->gradient()[i]);
    distance += d * d;
  }
  EXPECT_LT(std::sqrt(distance), 0.05 * a.grad_norm);
  if (has_mlp(GetParam())) {
    EXPECT_GT(distance, 0.0);
  }
}

std::int64_t num_threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(DenseNetwork, StartsNoThreadOfItsOwn) {
  ThreadPool pool(2);
  const std::int64_t before = num_threads_of_process();
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const ModelCase c{"", {.type = "dlrm"}, {13, std::vector<std::int64_t>(26, 16)}};
    const auto network = make_network(c, pool, {}, precision);
    Batch batch(c.shape, 2048, 1);
    batch.run(*network);
    network->apply(1);
    EXPECT_EQ(num_threads_of_process(), before);
  }
}

TEST(DenseNetwork, ParametersOfLinearLayersStartWithinTheBoundOfPyTorch) {
  ThreadPool pool(1);
  const ModelCase c{"", {.type = "deepfm", .hidden = {100}}, {0, {2, 2, 2, 2}}};
  const auto network = make_network(c, pool);
  const auto weight = network->state()[0];
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
  const ModelCase c{"", {.type = "dlrm", .bottom = {6}, .top = {5}}, {3, {4, 4}}};
  const auto network = make_network(c, pool, optimizer_of("adam", 0.1));
  std::vector<std::string> names;
  std::int64_t size = 0;
  for (const auto& tensor : network->state()) {
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
  const auto network =
      make_network({"", {.type = "dlrm", .bottom = {6, 4}, .top = {}}, {3, {4}}}, pool);
  EXPECT_EQ(network->num_parameters(), 6 * 3 + 6 + 4 * 6 + 4 + (4 + 1) + 1);
}

TEST(DenseNetwork, WorksWithoutNumericColumns) {
  ThreadPool pool(1);
  for (ModelCase c : all_models()) {
    c.shape.num_numeric = 0;
    for (InputShape::Sequence& sequence : c.shape.sequences) {  // masks alone
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
    if (c.model.type == "dlrm" || c.model.type == "din" || job::needs_first_order(c.model.type)) {
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
  const auto message = [&](const std::string& type, const InputShape& shape) {
    try {
      make_network({"", {.type = type}, shape}, pool);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message("dlrm", {2, {8, 8, 4}}), HasSubstr("field 2 is 4"));
  EXPECT_THAT(message("deepfm", {2, {8, 9}}), HasSubstr("field 1 is 9"));
  EXPECT_THAT(message("deepfm", {2, {1, 1}}), HasSubstr("at least one factor"));
  EXPECT_THAT(message("logistic", {2, {2, 2}}), HasSubstr("dim 1, got 2"));
  EXPECT_THAT(message("dlrm", {0, {4}}), HasSubstr("two vectors"));
  EXPECT_THAT(message("dlrm", {2, {}}), HasSubstr("at least one categorical"));
  EXPECT_THAT(message("ffnn", {0, {}}), HasSubstr("no input"));
}

TEST(DenseNetwork, ChecksTheSizesOfABatch) {
  ThreadPool pool(1);
  const ModelCase c{"", {.type = "logistic"}, {2, {1}}};
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
  Batch batch(c.shape, 100, 1);
  std::vector<float> a(100), b(100);
  with->predict(batch.input(), a);
  without->predict(batch.input(), b);
  EXPECT_EQ(a, b);
}

TEST(BatchNorm, RunningStatisticsFollowAppliedBatchesOnly) {
  ThreadPool pool(1);
  const ModelCase c{"",
                    {.type = "ffnn",
                     .bottom = {1},
                     .sparse = {},
                     .top = {},
                     .activation = "none",
                     .batch_norm = true},
                    {1, {}}};
  const auto network = make_network(c, pool);
  const auto value = [&](const std::string& name) { return snapshot(*network).at(name).at(0); };
  for (const auto& tensor : network->state()) {
    if (tensor.name == "bottom.0.weight") tensor.values[0] = 1.0F;
    if (tensor.name == "bottom.0.bias") tensor.values[0] = 0.0F;
  }
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
  interrupted->predict(large.input(), large.probabilities);
  interrupted->apply(1);
  EXPECT_EQ(snapshot(*plain), snapshot(*interrupted));
}

TEST(DescribeLibtorch, NamesVersionAndBlas) {
  EXPECT_THAT(describe_libtorch(), testing::AllOf(HasSubstr("libtorch 2."), HasSubstr("CPU")));
}

}  // namespace
}  // namespace satrap::dense
