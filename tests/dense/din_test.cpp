#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/dense/network_fixture.h"

namespace satrap::dense {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sets the mask of an example, given the length of its sequence.
void set_length(Batch& batch, const InputShape& shape, std::int64_t row, std::int64_t length) {
  for (const InputShape::Sequence& sequence : shape.sequences) {
    for (std::int64_t i = 0; i < sequence.length; ++i) {
      const std::int64_t column = sequence.mask_column + i;
      batch.numeric[static_cast<std::size_t>(row * shape.num_numeric + column)] =
          i < length ? 1.0F : 0.0F;
    }
  }
}

TEST(Din, AgreesWithPaperAndPencil) {
  ThreadPool pool(1);
  const ModelCase c{
      "",
      {.type = job::ModelType::kDin, .top = {}, .attention = {}, .attend = {{"history", "item"}}},
      {.num_numeric = 2,
       .field_widths = {1, 1, 1},
       .field_names = {"item", "history", "history"},
       .sequences = {{.first_field = 1, .length = 2, .mask_column = 0}}}};
  const auto network = make_network(c, pool);
  const auto set = [&](std::size_t tensor, const std::vector<float>& values) {
    DenseNetwork::State state = network->save();
    state[tensor].values = values;
    network->load(state);
  };
  set(0, {1.0F, 2.0F, 3.0F, 4.0F});  // score = q + 2 k + 3 (q - k) + 4 q k + 0.5
  set(1, {0.5F});
  set(2, {0.25F, 2.0F});  // logit = 0.25 q + 2 v - 1
  set(3, {-1.0F});
  Batch batch(c.shape, 2, 1);
  batch.pooled = {1.0F, 0.5F,  -1.0F,  // scores 1+1+1.5+2+0.5 = 6 and 1-2+6-4+0.5 = 1.5
                  1.0F, -1.0F, 7.0F};  // score 1.5; the 7 is padding
  batch.numeric = {1.0F, 1.0F, 1.0F, 0.0F};
  batch.labels = {1.0F, 0.0F};
  batch.run(*network);
  // v = 6 * 0.5 - 1.5 = 1.5 and -1.5; logits 2.25 and -3.75
  const double first = 1 / (1 + std::exp(-2.25)), second = 1 / (1 + std::exp(3.75));
  EXPECT_NEAR(batch.probabilities[0], first, 1e-6);
  EXPECT_NEAR(batch.probabilities[1], second, 1e-6);
  // dv / dk = score + k (2 - 3 + 4 q) = score + 3 k; dv / dq = sum of k (1 + 3 + 4 k) = 4 k + 4 k^2
  const double d0 = (first - 1) / 2, d1 = second / 2;
  EXPECT_NEAR(batch.grad_pooled[0], d0 * (0.25 + 2 * (2 + 1 - 4 + 4)), 1e-5);
  EXPECT_NEAR(batch.grad_pooled[1], d0 * 2 * (6 + 1.5), 1e-5);
  EXPECT_NEAR(batch.grad_pooled[2], d0 * 2 * (1.5 - 3), 1e-5);
  EXPECT_NEAR(batch.grad_pooled[3], d1 * 0.25, 1e-6);
  EXPECT_NEAR(batch.grad_pooled[4], d1 * 2 * (1.5 - 3), 1e-6);
  EXPECT_EQ(batch.grad_pooled[5], 0.0F);
}

TEST(Din, NeverReadsThePadding) {
  ThreadPool pool(1);
  const ModelCase c = model_named("din_of_several");
  const auto network = make_network(c, pool);
  Batch clean(c.shape, 600, 1);
  clean.run(*network);
  const std::vector<float> gradient(network->gradient().begin(), network->gradient().end());

  Batch dirty = clean;
  std::vector<std::size_t> padding;
  for (std::int64_t r = 0; r < dirty.rows; ++r) {
    for (const InputShape::Sequence& s : c.shape.sequences) {
      for (std::int64_t i = 0; i < s.length; ++i) {
        const std::int64_t mask = r * c.shape.num_numeric + s.mask_column + i;
        if (dirty.numeric[static_cast<std::size_t>(mask)] != 0.0F) continue;
        const std::int64_t first = r * c.shape.pooled_width() + (s.first_field + i) * 4;
        for (std::int64_t k = 0; k < 4; ++k) padding.push_back(static_cast<std::size_t>(first + k));
      }
    }
  }
  ASSERT_GT(padding.size(), 1000U);
  for (const std::size_t i : padding) dirty.pooled[i] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(dirty.run(*network).finite);
  EXPECT_EQ(dirty.probabilities, clean.probabilities);
  EXPECT_EQ(dirty.grad_pooled, clean.grad_pooled);
  EXPECT_TRUE(std::ranges::equal(network->gradient(), gradient));
  for (const std::size_t i : padding) ASSERT_EQ(dirty.grad_pooled[i], 0.0F);
}

TEST(Din, OfEmptySequencesAloneLearnsNothingAboutAttention) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    ThreadPool pool(1);
    const ModelCase c = model_named("din");
    const auto network = make_network(c, pool, {}, precision);
    Batch batch(c.shape, 600, 1);
    batch.run(*network);  // leaves gradients that are not zero
    for (std::int64_t r = 0; r < batch.rows; ++r) set_length(batch, c.shape, r, 0);
    const DenseResult result = batch.run(*network);
    EXPECT_TRUE(result.finite);
    EXPECT_GT(result.grad_norm, 0.0);
    std::size_t at = 0;
    for (const auto& tensor : network->save()) {
      if (!tensor.name.starts_with("attention.")) break;
      for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        ASSERT_EQ(network->gradient()[at++], 0.0F) << tensor.name;
      }
    }
    EXPECT_EQ(at, 16U * 12 + 12 + 12 * 6 + 6 + 6 + 1);
  }
}

TEST(Din, SeesEveryElement) {
  ThreadPool pool(1);
  const ModelCase c = model_named("din");
  const auto network = make_network(c, pool);
  std::vector<float> seen;
  for (const std::int64_t length : {0, 1, 2, 3}) {
    Batch batch(c.shape, 1, 1);
    set_length(batch, c.shape, 0, length);
    batch.predict(*network);
    EXPECT_THAT(seen, testing::Not(testing::Contains(batch.probabilities[0]))) << length;
    seen.push_back(batch.probabilities[0]);
  }
}

TEST(Din, RefusesFeaturesItCannotUse) {
  ThreadPool pool(1);
  const auto message = [&](std::vector<job::AttendConfig> attend) {
    ModelCase c = model_named("din");
    c.model.attend = std::move(attend);
    try {
      make_network(c, pool);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message({{"histroy", "item"}}),
              AllOf(HasSubstr("model.attend.0.sequence: "), HasSubstr("did you mean 'history'")));
  EXPECT_THAT(message({{"history", "item"}, {"seen", "price"}}),
              AllOf(HasSubstr("model.attend.1.query: "), HasSubstr("no feature 'price'")));
  EXPECT_THAT(message({{"user", "item"}}),
              AllOf(HasSubstr("model.attend.0.sequence: "), HasSubstr("features.user.pooling")));
  EXPECT_THAT(message({{"history", "seen"}}),
              AllOf(HasSubstr("model.attend.0.query: "), HasSubstr("'seen' is a sequence")));
  EXPECT_THAT(message({{"history", "age"}}),
              AllOf(HasSubstr("model.attend.0.query: "), HasSubstr("'age' is 3 wide"),
                    HasSubstr("'history' 4")));
  EXPECT_THAT(message({{"history", "item"}, {"history", "item"}}),
              AllOf(HasSubstr("model.attend.1: "), HasSubstr("already")));
}

}  // namespace
}  // namespace satrap::dense
