// A model's graph, computed by libtorch, beside its own passes.

#include "src/dense/graph_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/dense/network_fixture.h"
#include "tests/support/sanitized.h"

namespace satrap::dense {
namespace {

ModelCase as_graph(ModelCase c) {
  c.model.engine = job::Engine::kGraph;
  return c;
}

std::vector<ModelCase> every_case() {
  std::vector<ModelCase> cases = all_models();
  for (const ModelCase& c : models_of_several_labels()) cases.push_back(c);
  for (const ModelCase& c : models_of_experts()) cases.push_back(c);
  for (const ModelCase& c : models_of_losses()) cases.push_back(c);
  const std::size_t num_plain = cases.size();
  for (std::size_t i = 0; i < num_plain; ++i) {
    ModelCase c = cases[i];
    if (!has_mlp(c) || c.model.activation == job::Activation::kNone) continue;
    c.name += "_dropout";
    c.model.dropout = 0.3;
    cases.push_back(c);
  }
  return cases;
}

void expect_near(std::span<const float> found, std::span<const float> wanted, float tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  float largest = 0.0F;
  for (const float value : wanted) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], wanted[i], tolerance * std::max(largest, 1e-3F)) << i;
  }
}

/// Of batch normalisation.
void expect_statistics_near(DenseNetwork& found, DenseNetwork& wanted, float tolerance) {
  const Snapshot of_found = snapshot(found);
  for (const auto& [name, values] : snapshot(wanted)) {
    if (name.find("running_") == std::string::npos) continue;
    SCOPED_TRACE(name);
    expect_near(of_found.at(name), values, tolerance);
  }
}

class GraphNetworkTest : public testing::Test {
 protected:
  ThreadPool pool_{2};
};

TEST_F(GraphNetworkTest, OutputsAndGradientsAreThoseOfThePasses) {
  for (const ModelCase& c : every_case()) {
    SCOPED_TRACE(c.name);
    const auto native = make_network(c, pool_);
    const auto graph = make_network(as_graph(c), pool_);
    EXPECT_EQ(snapshot(*graph), snapshot(*native));  // the same start
    for (const std::int64_t rows : {1100, 1, 17}) {
      if (rows == 1 && c.model.batch_norm) continue;
      Batch batch(c.shape, rows, static_cast<std::uint64_t>(rows));
      Batch other = batch;
      const DenseResult result = batch.run(*native, 3);
      EXPECT_NEAR(other.run(*graph, 3).loss, result.loss, 1e-5 * result.loss);
      expect_near(other.probabilities, batch.probabilities, 1e-5F);
      expect_near(other.grad_pooled, batch.grad_pooled, 1e-5F);
      expect_near(graph->gradient(), native->gradient(), 1e-5F);
      native->apply(1);
      graph->apply(1);
      expect_statistics_near(*graph, *native, 1e-5F);
      restore(*graph, snapshot(*native));
    }
  }
}

TEST_F(GraphNetworkTest, WeightsAndAShiftOfTheLossAreThoseOfThePasses) {
  for (ModelCase c : every_case()) {
    SCOPED_TRACE(c.name);
    c.shape.loss_shift = 0.7F;
    const auto native = make_network(c, pool_);
    const auto graph = make_network(as_graph(c), pool_);
    Batch batch(c.shape, 40, 5);
    batch.weigh(c.shape, 6);
    Batch other = batch;
    const DenseResult result = batch.run(*native);
    EXPECT_NEAR(other.run(*graph).loss, result.loss, 1e-5 * result.loss);
    expect_near(other.probabilities, batch.probabilities, 1e-5F);
    expect_near(other.grad_pooled, batch.grad_pooled, 1e-5F);
    expect_near(graph->gradient(), native->gradient(), 1e-5F);
  }
}

TEST_F(GraphNetworkTest, LossesOf200StepsAreThoseOfThePasses) {
  constexpr std::int64_t kNumSteps = kSanitized ? 20 : 200;
  for (const ModelCase& c : every_case()) {
    SCOPED_TRACE(c.name);
    const auto native = make_network(c, pool_);
    const auto graph = make_network(as_graph(c), pool_);
    for (std::int64_t step = 1; step <= kNumSteps; ++step) {
      Batch batch(c.shape, 64, static_cast<std::uint64_t>(step));
      Batch other = batch;
      const double loss = batch.run(*native, step).loss;
      ASSERT_NEAR(other.run(*graph, step).loss, loss, 1e-5 * loss) << "step " << step;
      native->apply(step);
      graph->apply(step);
    }
    // A bias before batch normalisation has a gradient of rounding alone, of which Adam makes
    // steps.
    if (c.model.batch_norm) continue;
    Batch batch(c.shape, 300, 7), other(c.shape, 300, 7);
    batch.predict(*native);
    other.predict(*graph);
    // The steps have made more of what libtorch rounds in another way, by the CPU: up to 1.8e-4.
    expect_near(other.probabilities, batch.probabilities, 1e-3F);
  }
}

TEST_F(GraphNetworkTest, ThreadsDoNotChangeABit) {
  for (const char* const name : {"dlrm", "ffnn_batch_norm", "din"}) {
    ModelCase c = as_graph(model_named(name));
    if (c.model.activation != job::Activation::kNone) c.model.dropout = 0.2;
    std::vector<Snapshot> states;
    for (const std::int64_t threads : {1, 3}) {
      ThreadPool pool(threads);
      const auto network = make_network(c, pool);
      for (std::int64_t step = 1; step < 4; ++step) {
        Batch(c.shape, 2000, static_cast<std::uint64_t>(step)).run(*network, step);
        network->apply(step);
      }
      states.push_back(snapshot(*network));
    }
    EXPECT_EQ(states[0], states[1]) << name;
  }
}

std::vector<job::DenseOptimizerConfig> every_optimizer() {
  std::vector<job::DenseOptimizerConfig> all;
  for (const auto& [word, type] : job::kDenseOptimizers) {
    job::DenseOptimizerConfig optimizer;
    optimizer.type = type;
    optimizer.lr = 0.05;
    // Else gradients that are rounding alone make whole steps.
    if (optimizer.type != DenseOptimizerType::kSgd) optimizer.eps = 1e-4;
    all.push_back(optimizer);
    optimizer.weight_decay = 0.01;
    all.push_back(optimizer);
  }
  job::DenseOptimizerConfig momentum;
  momentum.type = DenseOptimizerType::kSgd;
  momentum.lr = 0.05;
  momentum.momentum = 0.9;
  all.push_back(momentum);
  momentum.weight_decay = 0.01;
  all.push_back(momentum);
  return all;
}

TEST_F(GraphNetworkTest, EveryOptimizerMakesTheStepsOfThePasses) {
  const ModelCase c = model_named("dlrm");
  for (job::DenseOptimizerConfig optimizer : every_optimizer()) {
    for (const double clip_norm : {0.0, 0.05}) {
      optimizer.clip_norm = clip_norm;
      SCOPED_TRACE(testing::Message() << word_of(optimizer.type, job::kDenseOptimizers) << " decay "
                                      << optimizer.weight_decay << " momentum "
                                      << optimizer.momentum << " clip " << clip_norm);
      const auto make = [&](const ModelCase& of) {
        return DenseNetwork::create(of.model, optimizer, Precision::kFp32, of.shape, 1, pool_);
      };
      const auto native = make(c), graph = make(as_graph(c));
      for (std::int64_t step = 1; step <= 5; ++step) {
        Batch batch(c.shape, 50, static_cast<std::uint64_t>(step));
        Batch other = batch;
        batch.run(*native, step);
        other.run(*graph, step);
        native->apply(step);
        graph->apply(step);
      }
      const Snapshot found = snapshot(*graph);
      for (const auto& [name, values] : snapshot(*native)) {
        SCOPED_TRACE(name);
        expect_near(found.at(name), values, 1e-4F);
      }
    }
  }
}

TEST_F(GraphNetworkTest, AStepThatIsNotFiniteChangesNothing) {
  for (const job::DenseOptimizerConfig& optimizer : every_optimizer()) {
    for (const char* const name : {"dlrm", "ffnn_batch_norm"}) {
      SCOPED_TRACE(testing::Message()
                   << word_of(optimizer.type, job::kDenseOptimizers) << " of " << name);
      const ModelCase c = as_graph(model_named(name));
      const auto network =
          DenseNetwork::create(c.model, optimizer, Precision::kFp32, c.shape, 1, pool_);
      Batch(c.shape, 20, 1).run(*network, 1);
      network->apply(1);
      const Snapshot before = snapshot(*network);
      Batch broken(c.shape, 20, 2);
      broken.pooled[5] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_FALSE(broken.run(*network, 2).finite);
      EXPECT_NE(network->flag(), 0.0F);
      network->apply(2);
      EXPECT_EQ(snapshot(*network), before);
      // As if other ranks' steps were finite, and one's not.
      Batch(c.shape, 20, 3).run(*network, 2);
      EXPECT_EQ(network->flag(), 0.0F);
      network->flag_and_first_bucket()[0] = 2.0F;
      network->apply(2);
      EXPECT_EQ(snapshot(*network), before);
      Batch(c.shape, 20, 4).run(*network, 2);
      network->apply(2);
      EXPECT_NE(snapshot(*network), before);
    }
  }
}

// What a collective changes in the host's memory is what is applied.
TEST_F(GraphNetworkTest, TheGradientThatIsAppliedIsTheCallers) {
  const ModelCase c = as_graph(model_named("dlrm"));
  const auto mine = make_network(c, pool_), other = make_network(c, pool_);
  Batch(c.shape, 20, 1).run(*mine, 1);
  Batch(c.shape, 20, 2).run(*other, 1);
  std::ranges::copy(other->gradient(), mine->gradient().begin());
  mine->apply(1);
  other->apply(1);
  EXPECT_EQ(snapshot(*mine), snapshot(*other));
}

TEST_F(GraphNetworkTest, ARankWithoutExamplesHasNoGradient) {
  for (const char* const name : {"dlrm", "ffnn_batch_norm"}) {
    const ModelCase c = as_graph(model_named(name));
    const auto network = make_network(c, pool_);
    Batch(c.shape, 20, 1).run(*network, 1);
    network->apply(1);
    Batch none(c.shape, 0, 1);
    DenseInput input = none.input(2);
    input.loss_examples = 7;
    network->forward_backward(input, none.output());
    const DenseResult result = network->finish();
    EXPECT_EQ(result.loss, 0.0);
    EXPECT_TRUE(result.finite);
    EXPECT_EQ(network->flag(), 0.0F);
    for (const float value : network->gradient()) EXPECT_EQ(value, 0.0F);
  }
}

TEST_F(GraphNetworkTest, ABatchThatIsNotAppliedChangesNoStatistics) {
  const ModelCase c = as_graph(model_named("ffnn_batch_norm"));
  const auto network = make_network(c, pool_);
  const Snapshot before = snapshot(*network);
  Batch(c.shape, 100, 1).run(*network, 1);
  EXPECT_EQ(snapshot(*network), before);
  network->apply(1);
  EXPECT_NE(snapshot(*network), before);
}

TEST_F(GraphNetworkTest, TheExportIsThatOfTheModel) {
  for (const ModelCase& c : all_models()) {
    EXPECT_EQ(make_network(as_graph(c), pool_)->to_torchscript(),
              make_network(c, pool_)->to_torchscript());
  }
}

/// As a share of the length of `wanted`.
double distance(std::span<const float> found, std::span<const float> wanted) {
  double between = 0.0, length = 0.0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto difference = static_cast<double>(found[i] - wanted[i]);
    between += difference * difference;
    length += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
  }
  return std::sqrt(between / length);
}

// Both round operands and results of products; what else is rounded differs.
TEST_F(GraphNetworkTest, InBf16OutputsAndGradientsAreNearThoseOfThePasses) {
  for (const ModelCase& c : all_models()) {
    if (c.model.batch_norm) continue;  // which autocast leaves in fp32
    SCOPED_TRACE(c.name);
    const auto native = make_network(c, pool_, {}, Precision::kBf16);
    const auto graph = make_network(as_graph(c), pool_, {}, Precision::kBf16);
    const auto exact = make_network(as_graph(c), pool_);
    Batch batch(c.shape, 200, 1);
    Batch other = batch, fp32 = batch;
    batch.run(*native, 1);
    other.run(*graph, 1);
    fp32.run(*exact, 1);
    expect_near(other.probabilities, batch.probabilities, 0.01F);
    EXPECT_LT(distance(other.grad_pooled, batch.grad_pooled), 0.1);
    EXPECT_LT(distance(graph->gradient(), native->gradient()), 0.1);
    EXPECT_EQ(other.probabilities == fp32.probabilities, !has_mlp(c));
    graph->apply(1);
    batch.predict(*native);
    for (const float p : batch.probabilities) ASSERT_TRUE(std::isfinite(p));
  }
}

TEST_F(GraphNetworkTest, InBf16ItLearns) {
  const ModelCase c = as_graph(model_named("dlrm"));
  const auto network =
      make_network(c, pool_, optimizer_of(DenseOptimizerType::kAdam, 0.01), Precision::kBf16);
  Batch batch(c.shape, 100, 1);
  const double first = batch.run(*network, 1).loss;
  double last = first;
  for (std::int64_t step = 1; step <= 60; ++step) {
    network->apply(step);
    last = batch.run(*network, step + 1).loss;
  }
  EXPECT_LT(last, 0.8 * first);
}

TEST_F(GraphNetworkTest, Tf32IsRefusedOnACpu) {
  for (const job::Engine engine : {job::Engine::kNative, job::Engine::kGraph}) {
    ModelCase c = model_named("dlrm");
    c.model.engine = engine;
    try {
      DenseNetwork::create(c.model, {}, Precision::kTf32, c.shape, 1, pool_);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      EXPECT_NE(std::string(error.what()).find("tf32 is a GPU's"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace satrap::dense
