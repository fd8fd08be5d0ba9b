// Training in fp16: the loss scale, and results beside those in fp32.

#include "src/dense/loss_scale.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/dense/network_fixture.h"
#include "tests/support/sanitized.h"

namespace satrap::dense {
namespace {

constexpr float kTooLarge = 0x1p24F;  // for the gradient of 20 examples
constexpr std::int64_t kScaledRows = 20;

ModelCase on_graph(const std::string& name) {
  ModelCase c = model_named(name);
  c.model.engine = job::Engine::kGraph;
  return c;
}

/// Factor, finite steps in a row, steps that it made skip.
using Parts = std::vector<float>;

Parts scale_of(DenseNetwork& network) {
  return snapshot(network).at(DenseNetwork::kLossScaleTensor);
}

void set_scale(DenseNetwork& network, const Parts& parts) {
  Snapshot state = snapshot(network);
  state.at(DenseNetwork::kLossScaleTensor) = parts;
  restore(network, state);
}

Snapshot all_but_scale(DenseNetwork& network) {
  Snapshot state = snapshot(network);
  state.erase(DenseNetwork::kLossScaleTensor);
  return state;
}

/// As a share of the length of `wanted`.
double distance_between(std::span<const float> found, std::span<const float> wanted) {
  double between = 0.0, length = 0.0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto difference = static_cast<double>(found[i]) - static_cast<double>(wanted[i]);
    between += difference * difference;
    length += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
  }
  return std::sqrt(between / length);
}

class LossScaleTest : public testing::Test {
 protected:
  std::unique_ptr<DenseNetwork> make(const ModelCase& c,
                                     const job::DenseOptimizerConfig& optimizer = {}) {
    return make_network(c, pool_, optimizer, Precision::kFp16);
  }

  /// The result of a whole step, of batch number `step`.
  DenseResult train(DenseNetwork& network, std::int64_t step, std::int64_t loss_examples = 0) {
    Batch batch(dlrm_.shape, kScaledRows, static_cast<std::uint64_t>(step));
    DenseInput input = batch.input(step);
    input.loss_examples = loss_examples;
    network.forward_backward(input, batch.output());
    network.apply(step);
    return network.finish();
  }

  const ModelCase dlrm_ = on_graph("dlrm");
  ThreadPool pool_{2};
};

TEST_F(LossScaleTest, StartsAt65536AndIsOfFp16Alone) {
  const auto network = make(dlrm_);
  EXPECT_EQ(scale_of(*network), (Parts{65536, 0, 0}));
  EXPECT_EQ(network->loss_scale()->factor, 65536.0);
  EXPECT_EQ(network->loss_scale()->skipped_steps, 0);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto other = make_network(dlrm_, pool_, {}, precision);
    EXPECT_FALSE(other->loss_scale());
    EXPECT_EQ(snapshot(*other).count(DenseNetwork::kLossScaleTensor), 0U);
  }
}

TEST_F(LossScaleTest, LossesOf200StepsAreNearThoseOfFp32) {
  constexpr std::int64_t kNumSteps = kSanitized ? 20 : 200;
  for (ModelCase c : all_models()) {
    SCOPED_TRACE(c.name);
    c.model.engine = job::Engine::kGraph;
    const auto exact = make_network(c, pool_), half = make(c);
    for (std::int64_t step = 1; step <= kNumSteps; ++step) {
      Batch batch(c.shape, 64, static_cast<std::uint64_t>(step));
      Batch other = batch;
      const double loss = batch.run(*exact, step).loss;
      exact->apply(step);
      DenseResult result = other.run(*half, step);
      half->apply(step);
      for (; result.overflowed; half->apply(step)) result = other.run(*half, step);
      ASSERT_TRUE(result.finite);
      ASSERT_NEAR(result.loss, loss, 3e-3 * loss) << "step " << step;
    }
    Batch batch(c.shape, 64, 7);
    batch.predict(*half);
    for (const float p : batch.probabilities) ASSERT_TRUE(p > 0.0F && p < 1.0F) << p;
    EXPECT_NE(all_but_scale(*half), snapshot(*exact));  // products were fp16
  }
}

// Gradients of 2^-20 and less, which fp16 has with one bit or none.
TEST_F(LossScaleTest, SmallGradientsAreNotLost) {
  const auto exact = make_network(dlrm_, pool_);
  const auto gradients = [&](DenseNetwork& network) {
    Batch batch(dlrm_.shape, kScaledRows, 1);
    DenseInput input = batch.input();
    input.loss_examples = 1 << 24;
    network.forward_backward(input, batch.output());
    EXPECT_TRUE(network.finish().finite);
    std::vector<float> all(network.gradient().begin(), network.gradient().end());
    all.insert(all.end(), batch.grad_pooled.begin(), batch.grad_pooled.end());
    return all;
  };
  const std::vector<float> wanted = gradients(*exact);
  const auto with_factor = [&](float factor) {
    const auto network = make(dlrm_);
    set_scale(*network, {factor, 0, 0});
    return distance_between(gradients(*network), wanted);
  };
  EXPECT_LT(with_factor(65536), 0.01);
  EXPECT_LT(with_factor(0x1p20F), 0.01);
  EXPECT_GT(with_factor(1), 0.2);
}

TEST_F(LossScaleTest, AnOverflowSkipsTheUpdateAndHalvesTheFactor) {
  for (const auto& [word, type] : job::kDenseOptimizers) {
    for (const char* const name : {"dlrm", "ffnn_batch_norm"}) {
      SCOPED_TRACE(testing::Message() << word << " of " << name);
      const ModelCase c = on_graph(name);
      const auto network = make(c, optimizer_of(type, 0.01));
      set_scale(*network, {kTooLarge, 7, 3});
      const Snapshot before = all_but_scale(*network);
      Batch batch(c.shape, kScaledRows, 1);
      const DenseResult result = batch.run(*network);
      EXPECT_FALSE(result.finite);
      EXPECT_TRUE(result.overflowed);
      EXPECT_TRUE(std::isfinite(result.loss));
      EXPECT_NE(network->flag(), 0.0F);
      EXPECT_EQ(scale_of(*network), (Parts{kTooLarge, 7, 3}));  // until it is applied
      network->apply(1);
      EXPECT_EQ(all_but_scale(*network), before);
      EXPECT_EQ(scale_of(*network), (Parts{kTooLarge / 2, 0, 4}));
      int num_skipped = 1;
      for (; batch.run(*network).overflowed; ++num_skipped) network->apply(1);
      EXPECT_GT(num_skipped, 1);
      EXPECT_LT(num_skipped, 16);
      EXPECT_EQ(network->loss_scale()->skipped_steps, 3 + num_skipped);
      EXPECT_EQ(network->loss_scale()->factor, std::ldexp(kTooLarge, -num_skipped));
      EXPECT_EQ(all_but_scale(*network), before);
      network->apply(1);
      EXPECT_NE(all_but_scale(*network), before);
    }
  }
}

TEST_F(LossScaleTest, FiniteStepsInARowDoubleTheFactor) {
  const auto network = make(dlrm_);
  set_scale(*network, {1024, 1998, 5});
  EXPECT_TRUE(train(*network, 1).finite);
  EXPECT_EQ(scale_of(*network), (Parts{1024, 1999, 5}));
  train(*network, 2);
  EXPECT_EQ(scale_of(*network), (Parts{2048, 0, 5}));
  train(*network, 3);
  EXPECT_EQ(scale_of(*network), (Parts{2048, 1, 5}));
  set_scale(*network, {0x1p24F, 1999, 0});
  EXPECT_TRUE(train(*network, 4, 1 << 24).finite);
  EXPECT_EQ(scale_of(*network), (Parts{0x1p24F, 0, 0}));  // the largest
}

TEST_F(LossScaleTest, ALossThatIsNotFiniteIsNotTheFactors) {
  const auto network = make(dlrm_);
  set_scale(*network, {1024, 9, 0});
  const Snapshot before = all_but_scale(*network);
  Batch broken(dlrm_.shape, kScaledRows, 1);
  broken.pooled[5] = std::numeric_limits<float>::quiet_NaN();
  const DenseResult result = broken.run(*network);
  EXPECT_FALSE(result.finite);
  EXPECT_FALSE(result.overflowed);
  network->apply(1);
  EXPECT_EQ(all_but_scale(*network), before);
  EXPECT_EQ(scale_of(*network), (Parts{1024, 0, 0}));
}

TEST_F(LossScaleTest, AnOverflowAtTheLeastFactorCountsAsNotFinite) {
  ModelCase c = dlrm_;
  c.shape.label_weights = {1e9F};
  const auto network = make(c);
  Batch batch(c.shape, kScaledRows, 1);
  for (const float factor : {2.0F, 1.0F}) {
    set_scale(*network, {factor, 9, 0});
    const DenseResult result = batch.run(*network);
    EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_FALSE(result.finite);
    EXPECT_EQ(result.overflowed, factor > 1.0F);
    network->apply(1);
    EXPECT_EQ(scale_of(*network), (Parts{1, 0, factor > 1.0F ? 1.0F : 0.0F}));
  }
}

// As a collective sums them: flags 1 and 0, then 1 and 1 of which one is a loss.
TEST_F(LossScaleTest, RanksHaveOneFactor) {
  const auto one = make(dlrm_), other = make(dlrm_);
  for (const bool is_broken : {false, true}) {
    const Snapshot before = snapshot(*one);
    Batch overflows(dlrm_.shape, kScaledRows, 1), is_small(dlrm_.shape, kScaledRows, 2);
    DenseInput small = is_small.input();
    small.loss_examples = 1 << 24;
    if (is_broken) is_small.numeric[0] = std::numeric_limits<float>::infinity();
    for (const auto& network : {one.get(), other.get()}) set_scale(*network, {kTooLarge, 3, 0});
    one->forward_backward(overflows.input(), overflows.output());
    other->forward_backward(small, is_small.output());
    EXPECT_EQ(one->flag(), 1.0F);
    EXPECT_EQ(other->flag(), is_broken ? 1.0F : 0.0F);
    const auto mine = one->flag_and_first_bucket(), theirs = other->flag_and_first_bucket();
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = theirs[i] = mine[i] + theirs[i];
    for (const auto& network : {one.get(), other.get()}) {
      network->apply(1);
      const DenseResult result = network->finish();
      EXPECT_FALSE(result.finite);
      EXPECT_EQ(result.overflowed, !is_broken);
      EXPECT_EQ(scale_of(*network),
                (is_broken ? Parts{kTooLarge, 0, 0} : Parts{kTooLarge / 2, 0, 1}));
    }
    EXPECT_EQ(snapshot(*one), snapshot(*other));
    EXPECT_EQ(all_but_scale(*one).at("adam.step"), before.at("adam.step"));
  }
}

TEST_F(LossScaleTest, ANetworkContinuesFromItsState) {
  const auto trained = make(dlrm_), loaded = make(dlrm_);
  set_scale(*trained, {0x1p22F, 0, 0});
  for (std::int64_t step = 1; step <= 9; ++step) train(*trained, step);
  EXPECT_GT(trained->loss_scale()->skipped_steps, 0);
  loaded->load(trained->save());
  for (std::int64_t step = 10; step <= 14; ++step) {
    for (const auto& network : {trained.get(), loaded.get()}) train(*network, step);
  }
  EXPECT_EQ(snapshot(*loaded), snapshot(*trained));
  EXPECT_NE(scale_of(*loaded), (Parts{65536, 5, 0}));
}

TEST_F(LossScaleTest, IsRefusedWhereLibtorchDoesNotComputeTheNetwork) {
  ModelCase c = model_named("dlrm");
  try {
    c.model.engine = job::Engine::kNative;
    make(c);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_NE(std::string(error.what()).find("model.engine: graph"), std::string::npos);
  }
}

}  // namespace
}  // namespace satrap::dense
