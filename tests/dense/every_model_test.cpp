#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/dense/dense_network.h"
#include "tests/dense/network_fixture.h"

namespace satrap::dense {
namespace {

class EveryModel : public testing::TestWithParam<ModelCase> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryModel, testing::ValuesIn(all_models()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Labels,
                         EveryModel,
                         testing::ValuesIn(models_of_several_labels()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Experts, EveryModel, testing::ValuesIn(models_of_experts()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Losses, EveryModel, testing::ValuesIn(models_of_losses()), name_of_case);

// The models without batch normalisation.
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
INSTANTIATE_TEST_SUITE_P(Experts,
                         ModelOfIndependentRows,
                         testing::ValuesIn(of_independent_rows(models_of_experts())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Losses,
                         ModelOfIndependentRows,
                         testing::ValuesIn(of_independent_rows(models_of_losses())),
                         name_of_case);

// All state after a few steps, outputs included. 1300 examples make three pieces, the last one
// partial.
Snapshot train(const ModelCase& c, std::int64_t num_threads) {
  ThreadPool pool(num_threads);
  const auto network = make_network(c, pool, optimizer_of(DenseOptimizerType::kAdam, 0.01));
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

TEST_P(EveryModel, BeginsWithTheMeanLabelsInTheConstantOfEachLogit) {
  if (!GetParam().shape.losses.empty()) return;  // see the next test
  ThreadPool pool(1);
  const auto network = make_network(GetParam(), pool);
  const auto num_labels = static_cast<std::size_t>(GetParam().shape.num_labels());
  const std::vector<double> rates = {0.01, 0.5, 0.75};
  network->set_base_rates(std::span(rates).first(num_labels));
  const Snapshot before = snapshot(*network);
  std::vector<double> others = {0.03, 0.9, 0.5};
  network->set_base_rates(std::span(others).first(num_labels));
  const Snapshot after = snapshot(*network);
  std::vector<std::pair<float, float>> changed;
  for (const auto& [name, values] : before) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float now = after.at(name)[i];
      if (now != values[i]) changed.emplace_back(values[i], now);
    }
  }
  ASSERT_EQ(changed.size(), num_labels);
  for (std::size_t l = 0; l < num_labels; ++l) {
    const auto has = [&](double old_rate, double new_rate) {
      return std::ranges::any_of(changed, [&](const auto& pair) {
        const auto logit = [](double p) { return std::log(p / (1.0 - p)); };
        return std::abs(static_cast<double>(pair.first) - logit(old_rate)) < 1e-6 &&
               std::abs(static_cast<double>(pair.second) - logit(new_rate)) < 1e-6;
      });
    };
    EXPECT_TRUE(has(rates[l], others[l])) << "label " << l;
  }
  // The logits of any example move by the same.
  const auto logits_with = [&](const std::vector<double>& of_labels) {
    network->set_base_rates(std::span(of_labels).first(num_labels));
    Batch batch(GetParam().shape, 40, 1);
    std::vector<double> logits;
    batch.predict(*network);
    for (const float p : batch.probabilities) {
      logits.push_back(std::log(static_cast<double>(p) / (1.0 - static_cast<double>(p))));
    }
    return logits;
  };
  const std::vector<double> old_logits = logits_with(rates), new_logits = logits_with(others);
  for (std::size_t i = 0; i < old_logits.size(); ++i) {
    const double old_rate = rates[i % num_labels], new_rate = others[i % num_labels];
    EXPECT_NEAR(new_logits[i] - old_logits[i],
                std::log(new_rate / (1.0 - new_rate) * (1.0 - old_rate) / old_rate), 1e-3);
  }
}

TEST_P(EveryModel, BeginsWithTheMeanNumbersAndTheSharesOfClasses) {
  const InputShape& shape = GetParam().shape;
  if (shape.losses.empty()) return;
  ThreadPool pool(1);
  const auto network = make_network(GetParam(), pool);
  const auto num_outputs = static_cast<std::size_t>(shape.num_outputs());
  // What comes of a logit when its constant moves by so much does not depend on the example.
  const auto logits_with = [&](const std::vector<double>& rates) {
    network->set_base_rates(std::span(rates).first(num_outputs));
    Batch batch(shape, 40, 1);
    batch.predict(*network);
    std::vector<double> logits;
    for (std::size_t i = 0; i < batch.probabilities.size(); ++i) {
      const auto p = static_cast<double>(batch.probabilities[i]);
      const bool is_number =
          shape.num_classes == 0 && shape.losses[i % num_outputs] == job::Loss::kMse;
      const std::size_t first = i - i % num_outputs;
      logits.push_back(is_number ? p
                       : shape.num_classes == 0
                           ? std::log(p / (1.0 - p))
                           : std::log(p / static_cast<double>(batch.probabilities[first])));
    }
    return logits;
  };
  const std::vector<double> rates{0.1, 0.2, 0.3, 0.3, 0.1}, others{0.4, 0.05, 0.25, 0.2, 0.1};
  const std::vector<double> before = logits_with(rates), after = logits_with(others);
  const auto logit_of = [&](const std::vector<double>& of, std::size_t output) {
    if (shape.num_classes > 0) return std::log(of[output] / of[0]);
    const bool is_number = shape.losses[output] == job::Loss::kMse;
    return is_number ? of[output] : std::log(of[output] / (1.0 - of[output]));
  };
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::size_t output = i % num_outputs;
    EXPECT_NEAR(after[i] - before[i], logit_of(others, output) - logit_of(rates, output), 1e-3);
  }
}

/// A batch in which example r stands as often as the weight of its label, alone of all labels.
Batch repeated(const Batch& batch, const InputShape& shape, std::int64_t label) {
  Batch all(shape, 0, 1);
  const auto add = [](std::vector<float>& to, const std::vector<float>& from, std::int64_t row,
                      std::int64_t width) {
    to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
  };
  const std::int64_t num_labels = shape.num_labels();
  for (std::int64_t r = 0; r < batch.rows; ++r) {
    const auto own = static_cast<std::size_t>(r * num_labels + label);
    const float of_label = shape.label_weights[static_cast<std::size_t>(label)];
    for (float times = batch.weights[own] / of_label; times > 0.5F; times -= 1.0F, ++all.rows) {
      add(all.numeric, batch.numeric, r, shape.num_numeric);
      add(all.pooled, batch.pooled, r, shape.pooled_width());
      for (std::int64_t l = 0; l < num_labels; ++l) {
        all.labels.push_back(batch.labels[own]);
        all.weights.push_back(l == label ? of_label : 0.0F);
      }
    }
  }
  all.probabilities.resize(static_cast<std::size_t>(all.rows * shape.num_outputs()));
  all.grad_pooled.resize(all.pooled.size());
  return all;
}

TEST_P(EveryModel, AnExampleOfWeightTwoIsTwoExamples) {
  if (GetParam().model.batch_norm) return;  // they would be other examples of the batch
  ThreadPool pool(2);
  const auto network = make_network(GetParam(), pool);
  const InputShape& shape = GetParam().shape;
  Batch batch(shape, 600, 1);
  batch.weigh(shape, 2);
  const double loss = batch.run(*network).loss;
  const std::vector<float> gradient(network->gradient().begin(), network->gradient().end());
  double sum = 0.0;
  std::vector<float> gradient_of_all(gradient.size());
  for (std::int64_t l = 0; l < shape.num_labels(); ++l) {
    Batch all = repeated(batch, shape, l);
    DenseInput input = all.input();
    input.loss_examples = batch.rows;
    network->forward_backward(input, all.output());
    sum += network->finish().loss * static_cast<double>(all.rows);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient_of_all[i] += network->gradient()[i];
  }
  EXPECT_NEAR(loss, sum / static_cast<double>(batch.rows), 1e-6 * loss);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_NEAR(gradient[i], gradient_of_all[i], 1e-5) << i;
  }
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
    const auto matrix = [&](auto values, std::int64_t width) {
      return host_matrix(values.subspan(offset), 600, width);
    };
    const InputShape& shape = GetParam().shape;
    network->forward_backward(
        {600, matrix(std::span(numeric), shape.num_numeric),
         matrix(std::span(pooled), shape.pooled_width()), batch.matrix(batch.labels), 1},
        {batch.matrix(probabilities), matrix(std::span(grad), shape.pooled_width())});
    EXPECT_EQ(probabilities, batch.probabilities);
    EXPECT_EQ(grad, shifted(batch.grad_pooled));
    EXPECT_TRUE(std::ranges::equal(network->gradient(), gradient));
  }
}

TEST_P(EveryModel, LearnsALabelItIsShown) {
  // The sum of the pooled weights, which do not learn here, is noise in its value.
  if (GetParam().name == "logistic_of_a_number") return;
  ThreadPool pool(2);
  ModelCase c = GetParam();
  if (!c.model.head.empty()) c.model.head = {12, 8};  // the ReLUs of a narrower one may all die
  const auto network = make_network(c, pool, optimizer_of(DenseOptimizerType::kAdam, 0.02));
  Batch batch(c.shape, 200, 3);
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
    ASSERT_TRUE(small.run(*network).finite);
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
  const std::vector<float> trained = batch.probabilities;
  batch.predict(*network);
  EXPECT_EQ(batch.probabilities, trained);
}

TEST_P(EveryModel, ReportsNotANumberInAnyInputAndGoesOnAfterwards) {
  ThreadPool pool(2);
  const auto network =
      make_network(GetParam(), pool, optimizer_of(DenseOptimizerType::kAdagrad, 0.01));
  const Snapshot before = snapshot(*network);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity, -infinity}) {
    Batch numeric(GetParam().shape, 600, 1), pooled(GetParam().shape, 600, 1);
    numeric.numeric[1] = bad;
    pooled.pooled.back() = bad;
    EXPECT_FALSE(numeric.run(*network).finite);
    EXPECT_NE(network->flag(), 0.0F);
    network->apply(1);
    EXPECT_FALSE(pooled.run(*network).finite);
    EXPECT_NE(network->flag(), 0.0F);
    network->apply(1);
  }
  EXPECT_EQ(snapshot(*network), before);
  Batch good(GetParam().shape, 600, 1);
  EXPECT_TRUE(good.run(*network).finite);
  EXPECT_EQ(network->flag(), 0.0F);
}

TEST_P(EveryModel, ReadsAndWritesMatricesWithPaddingBetweenRows) {
  ThreadPool pool(2);
  const auto network = make_network(GetParam(), pool);
  const InputShape& shape = GetParam().shape;
  Batch batch(shape, 600, 1);
  batch.run(*network);
  const std::vector<float> gradient(network->gradient().begin(), network->gradient().end());
  constexpr float kUntouched = 77.0F;
  const auto padded = [&](const std::vector<float>& values, std::int64_t width) {
    HostMatrix matrix(600, width + 3);
    std::ranges::fill(matrix.values(), kUntouched);
    for (std::int64_t r = 0; r < 600; ++r) {
      std::copy_n(values.begin() + r * width, width, matrix.values().begin() + r * (width + 3));
    }
    return matrix;
  };
  HostMatrix numeric = padded(batch.numeric, shape.num_numeric);
  HostMatrix pooled = padded(batch.pooled, shape.pooled_width());
  HostMatrix grad = padded(std::vector<float>(batch.pooled.size()), shape.pooled_width());
  std::vector<float> probabilities(batch.probabilities.size());
  network->forward_backward(
      {600, numeric.columns(0, shape.num_numeric), pooled.columns(0, shape.pooled_width()),
       batch.matrix(batch.labels), 1},
      {batch.matrix(probabilities), grad.columns(0, shape.pooled_width())});
  EXPECT_EQ(probabilities, batch.probabilities);
  EXPECT_EQ(grad.values(), padded(batch.grad_pooled, shape.pooled_width()).values());
  EXPECT_TRUE(std::ranges::equal(network->gradient(), gradient));
}

TEST_P(EveryModel, LeavesEverythingAsItIsWhereAnyRankSetsTheFlag) {
  ThreadPool pool(1);
  const auto network =
      make_network(GetParam(), pool, optimizer_of(DenseOptimizerType::kAdam, 0.01));
  const Snapshot before = snapshot(*network);
  Batch batch(GetParam().shape, 40, 1);
  EXPECT_TRUE(batch.run(*network).finite);
  network->flag_and_first_bucket()[0] += 1.0F;  // as a sum over ranks does
  network->apply(1);
  EXPECT_EQ(snapshot(*network), before);
  batch.run(*network, 2);
  network->apply(2);
  EXPECT_NE(snapshot(*network), before);
}

TEST_P(EveryModel, ContinuesWithTheSameBitsFromItsState) {
  for (const auto& [word, type] : job::kDenseOptimizers) {
    ThreadPool pool(1);
    job::DenseOptimizerConfig optimizer = optimizer_of(type, 0.05);
    if (optimizer.type == DenseOptimizerType::kSgd) optimizer.momentum = 0.9;
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
    EXPECT_EQ(snapshot(*original), snapshot(*copy)) << word;
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
  network->predict({}, {});
}

TEST_P(EveryModel, StartsFromTheSeedAlone) {
  ThreadPool one(1), two(2);
  const auto a = make_network(GetParam(), one), b = make_network(GetParam(), two);
  EXPECT_EQ(snapshot(*a), snapshot(*b));
  if (!has_mlp(GetParam())) return;  // starts at 0
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

}  // namespace
}  // namespace satrap::dense
