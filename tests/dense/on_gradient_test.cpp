// forward_backward reports parts of the gradient while it still computes the rest.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/dense/network_fixture.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kBucket = DenseNetwork::kGradientBucket;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSlow = true;
#else
constexpr bool kIsSlow = false;
#endif

// Every model that has a dense network, with one of several buckets.
std::vector<ModelCase> large_models() {
  std::vector<ModelCase> models = all_models();
  std::erase_if(models, [](const ModelCase& c) { return !has_mlp(c); });
  for (ModelCase& c : models) {
    const bool has_hidden =
        job::needs_first_order(c.model.type) || c.model.type == job::ModelType::kDcnV2;
    (has_hidden ? c.model.hidden : c.model.top) = {500, 300};
    if (c.model.type == job::ModelType::kFfnn) c.model.sparse = {130};
    if (c.name == "dcn_v2") c.shape.field_widths = {60, 100, 30};  // large cross layers
  }
  for (const char* name : {"dcn_v2", "dlrm"}) {  // the gradient begins in the last label's head
    ModelCase c = *std::ranges::find(models, name, &ModelCase::name);
    c.name += "_with_heads";
    c.shape.label_weights = {1.0F, 0.25F, 3.0F};
    c.model.head = {200, 30};
    models.push_back(c);
    c.name += "_of_experts";
    c.model.heads = {.type = job::HeadsType::kPle, .experts = 2, .layers = {300}, .levels = 2};
    models.push_back(std::move(c));
  }
  return models;
}

class LargeModel : public testing::TestWithParam<ModelCase> {};
INSTANTIATE_TEST_SUITE_P(Models,
                         LargeModel,
                         testing::ValuesIn(large_models()),
                         [](const auto& test) { return test.param.name; });

// The bits, so that NaNs compare equal too.
std::vector<std::uint32_t> bits(std::span<const float> values) {
  std::vector<std::uint32_t> result(values.size());
  std::memcpy(result.data(), values.data(), values.size_bytes());
  return result;
}

TEST_P(LargeModel, TellsOfTheGradientInOrderAndDoesNotTouchItAgain) {
  // One replica; three; all of them, some with several pieces. With sanitizers three and all take
  // minutes: there several threads compute them, once, and all of them for two models alone.
  for (const std::int64_t rows : {40, 1300, 8300}) {
    const int rounds = kIsSlow && rows > 40 ? 1 : 2;
    if (rounds == 1 && rows > 1300 && GetParam().name != "deepfm" &&
        GetParam().name != "dlrm_with_heads")
      continue;
    ThreadPool one(1);
    const auto untold = make_network(GetParam(), one);
    Batch expected(GetParam().shape, rows, 1);
    const DenseResult result = expected.run(*untold);
    const std::span<const float> gradient = untold->gradient();
    ASSERT_GT(std::ssize(gradient), 2 * kBucket);

    for (const std::int64_t num_threads : {1, 5}) {
      if (rounds == 1 && num_threads == 1) continue;
      SCOPED_TRACE(concat(rows, " rows, ", num_threads, " threads"));
      ThreadPool pool(num_threads);
      const auto network = make_network(GetParam(), pool);
      Batch batch(GetParam().shape, rows, 1);
      const float nan = std::numeric_limits<float>::quiet_NaN();
      for (int round = 0; round < rounds; ++round) {
        std::int64_t end = std::ssize(gradient);
        network->forward_backward(batch.input(), batch.output(), [&](std::int64_t first) {
          EXPECT_EQ(first, (end - 1) / kBucket * kBucket);
          const auto bucket = network->gradient().subspan(static_cast<std::size_t>(first),
                                                          static_cast<std::size_t>(end - first));
          EXPECT_EQ(bits(bucket),
                    bits(gradient.subspan(static_cast<std::size_t>(first), bucket.size())));
          std::ranges::fill(bucket, nan);
          end = first;
        });
        const DenseResult told = network->finish();
        EXPECT_EQ(end, kBucket) << "all but the first bucket";
        EXPECT_EQ(told.loss, result.loss);
        EXPECT_EQ(told.grad_norm, result.grad_norm);
        EXPECT_TRUE(told.finite);
        EXPECT_EQ(batch.grad_pooled, expected.grad_pooled);
        const auto is_nan = [](float value) { return std::isnan(value); };
        EXPECT_TRUE(std::ranges::all_of(network->gradient().subspan(kBucket), is_nan));
        EXPECT_EQ(bits(network->gradient().first(kBucket)), bits(gradient.first(kBucket)));
      }
    }
  }
}

TEST_P(LargeModel, TellsOfTheFirstBeforeTheGradientOfTheEmbeddingsIsThere) {
  ThreadPool pool(1);
  const auto network = make_network(GetParam(), pool);
  Batch batch(GetParam().shape, 40, 1);
  const std::vector<float> untouched(batch.grad_pooled.size(), 77.0F);
  batch.grad_pooled = untouched;
  int num_told = 0;
  network->forward_backward(batch.input(), batch.output(), [&](std::int64_t) {
    if (num_told++ == 0) {
      EXPECT_EQ(batch.grad_pooled, untouched);
    }
  });
  EXPECT_GT(num_told, 1);
  EXPECT_NE(batch.grad_pooled, untouched);
}

TEST(OnGradient, SmallNetworksAndEmptySharesAreNotToldOf) {
  ThreadPool pool(1);
  const DenseNetwork::OnGradient unexpected = [](std::int64_t first) {
    ADD_FAILURE() << "told from " << first;
  };
  for (const ModelCase& c : all_models()) {
    const auto network = make_network(c, pool);
    Batch batch(c.shape, 40, 1);
    network->forward_backward(batch.input(), batch.output(), unexpected);
  }
  for (const ModelCase& c : large_models()) {
    const auto network = make_network(c, pool);
    DenseInput nothing{};
    nothing.loss_examples = 10;
    network->forward_backward(nothing, {}, unexpected);
    EXPECT_TRUE(std::ranges::all_of(network->gradient(), [](float g) { return g == 0.0F; }));
  }
}

}  // namespace
}  // namespace satrap::dense
