#include "src/trainer/loss_weights.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap::trainer {
namespace {

using Floats = std::vector<float>;
using testing::DoubleEq;
using testing::ElementsAre;

constexpr float kAbsent = std::numeric_limits<float>::quiet_NaN();

data::Schema schema_of(std::vector<double> weights, double positive_weight = 1.0) {
  data::Schema schema;
  for (const double weight : weights) {
    schema.labels.push_back(
        {.name = "y", .source = {.positive_weight = positive_weight}, .weight = weight});
  }
  return schema;
}

data::Batch batch_of(Floats labels, std::int64_t num_labels, Floats weights = {}) {
  data::Batch batch;
  batch.num_labels = num_labels;
  batch.num_examples = std::ssize(labels) / num_labels;
  batch.labels = std::move(labels);
  batch.weights = std::move(weights);
  return batch;
}

/// Empty: those of the labels.
Floats weights_of(const data::Schema& schema, const data::Batch& batch) {
  Floats memory = {-1, -1, -1, -1, -1, -1, -1, -1};
  const ConstFloatMatrix found = LossWeights(schema, {}).of(batch, memory);
  if (found.data == nullptr) return {};
  EXPECT_EQ(found.data, memory.data());
  EXPECT_EQ(found.rows, batch.num_examples);
  EXPECT_EQ(found.cols, batch.num_labels);
  return memory;
}

TEST(LossWeights, AreThoseOfTheLabelsUnlessExamplesDiffer) {
  EXPECT_EQ(weights_of(schema_of({1}), batch_of({1, 0, 1}, 1)), Floats());
  EXPECT_EQ(weights_of(schema_of({1, 4}), batch_of({1, 0, 1, 1}, 2)), Floats());
}

TEST(LossWeights, AreProductsOfExampleLabelAndClass) {
  EXPECT_EQ(weights_of(schema_of({1}), batch_of({1, 0, 1}, 1, {2, 3, 0.5F})), (Floats{2, 3, 0.5F}));
  EXPECT_EQ(weights_of(schema_of({1, 4}), batch_of({1, 0, 1, 1}, 2, {2, 3})),
            (Floats{2, 8, 3, 12}));
  EXPECT_EQ(weights_of(schema_of({1, 4}, 10), batch_of({1, 0, 1, 1}, 2)), (Floats{10, 4, 10, 40}));
  EXPECT_EQ(weights_of(schema_of({1}, 10), batch_of({1, 0}, 1, {2, 3})), (Floats{20, 3}));
}

TEST(LossWeights, AMissingLabelHasNone) {
  EXPECT_EQ(weights_of(schema_of({2, 4}), batch_of({kAbsent, 0, 1, kAbsent}, 2)),
            (Floats{0, 4, 2, 0}));
  EXPECT_EQ(weights_of(schema_of({2, 4}), batch_of({kAbsent, 0, 1, kAbsent}, 2, {3, 5})),
            (Floats{0, 12, 10, 0}));
}

std::vector<double> rates(const data::Schema& schema, const std::vector<data::Batch>& of_ranks) {
  const LossWeights weights(schema, {});
  std::vector<double> all;
  for (const data::Batch& batch : of_ranks) {
    const std::vector<double> sums = weights.sums_of(batch);
    all.insert(all.end(), sums.begin(), sums.end());
  }
  return weights.rates_of(all);
}

TEST(LossWeights, TheRateIsTheShareOfPositivesOfAllRanks) {
  EXPECT_THAT(rates(schema_of({1}), {batch_of({1, 0, 0}, 1), batch_of({0, 0}, 1), batch_of({}, 1)}),
              ElementsAre(DoubleEq(1.5 / 6)));
  EXPECT_THAT(rates(schema_of({1, 8}), {batch_of({1, 0, 0, 1}, 2), batch_of({1, 1}, 2)}),
              ElementsAre(DoubleEq(2.5 / 4), DoubleEq(2.5 / 4)));
}

TEST(LossWeights, TheRateCountsWeights) {
  // Two examples of average weight 2: positives of 3 are 1.5 of them.
  EXPECT_THAT(rates(schema_of({1}), {batch_of({1, 0}, 1, {3, 1})}), ElementsAre(DoubleEq(2.0 / 3)));
  EXPECT_THAT(rates(schema_of({1}, 3), {batch_of({1, 0}, 1)}), ElementsAre(DoubleEq(2.0 / 3)));
  EXPECT_THAT(rates(schema_of({1, 1}), {batch_of({1, kAbsent, 0, 1, 0, 0}, 2)}),
              ElementsAre(DoubleEq(1.5 / 4), DoubleEq(1.5 / 3)));
}

TEST(LossWeights, OneClassSaysLittle) {
  const Floats none(5000), all(5000, 1.0F);
  EXPECT_THAT(rates(schema_of({1}), {batch_of(none, 1)}), ElementsAre(DoubleEq(0.001)));
  EXPECT_THAT(rates(schema_of({1}), {batch_of(all, 1)}), ElementsAre(DoubleEq(0.999)));
  EXPECT_THAT(rates(schema_of({1}), {}), ElementsAre(DoubleEq(0.5)));
  EXPECT_THAT(rates(schema_of({1, 1}), {batch_of({1, kAbsent, 0, kAbsent}, 2)}),
              ElementsAre(DoubleEq(0.5), DoubleEq(0.5)));
}

TEST(LossWeights, TheRateOfANumberIsItsMean) {
  data::Schema schema = schema_of({1, 4});
  schema.labels[1].source.type = data::LabelType::kNumber;
  EXPECT_THAT(
      rates(schema, {batch_of({1, -2.5F, 0, kAbsent}, 2, {1, 3}), batch_of({0, 7.5F}, 2, {3})}),
      ElementsAre(DoubleEq((1.0 / (7.0 / 3) + 0.5) / 4), DoubleEq(20.0 / 4)));
  EXPECT_THAT(rates(schema, {}), ElementsAre(DoubleEq(0.5), DoubleEq(0.0)));
  EXPECT_EQ(weights_of(schema, batch_of({1, -2.5F, 0, kAbsent}, 2, {1, 3})), (Floats{1, 4, 3, 0}));
}

TEST(LossWeights, TheRatesOfClassesAreTheirShares) {
  data::Schema schema = schema_of({2});
  schema.labels[0].source.classes = 3;
  EXPECT_THAT(rates(schema, {batch_of({0, 2, 2}, 1), batch_of({2}, 1)}),
              ElementsAre(DoubleEq(1.5 / 5.5), DoubleEq(0.5 / 5.5), DoubleEq(3.5 / 5.5)));
  // Weights 3 and 1 are 1.5 and a half of an average example.
  EXPECT_THAT(rates(schema, {batch_of({0, 1}, 1, {3, 1})}),
              ElementsAre(DoubleEq(2.0 / 3.5), DoubleEq(1.0 / 3.5), DoubleEq(0.5 / 3.5)));
  EXPECT_THAT(rates(schema, {}),
              ElementsAre(DoubleEq(1.0 / 3), DoubleEq(1.0 / 3), DoubleEq(1.0 / 3)));
}

}  // namespace
}  // namespace satrap::trainer
