// A model's graph, computed by libtorch, beside its own passes.

#include "src/dense/graph_model.h"

#include <cmath>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/dense/network_fixture.h"

namespace satrap::dense {
namespace {

ModelCase as_graph(ModelCase c) {
  c.model.engine = "graph";
  return c;
}

std::vector<ModelCase> every_case() {
  std::vector<ModelCase> cases = all_models();
  for (const ModelCase& c : models_of_several_labels()) cases.push_back(c);
  const std::size_t num_plain = cases.size();
  for (std::size_t i = 0; i < num_plain; ++i) {
    ModelCase c = cases[i];
    if (!has_mlp(c) || c.model.activation == "none") continue;
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

class GraphModelTest : public testing::Test {
 protected:
  ThreadPool pool_{2};
};

TEST_F(GraphModelTest, OutputsAndGradientsAreThoseOfThePasses) {
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

TEST_F(GraphModelTest, LossesOf200StepsAreThoseOfThePasses) {
  for (const ModelCase& c : every_case()) {
    SCOPED_TRACE(c.name);
    const auto native = make_network(c, pool_);
    const auto graph = make_network(as_graph(c), pool_);
    for (std::int64_t step = 1; step <= 200; ++step) {
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
    expect_near(other.probabilities, batch.probabilities, 1e-4F);
  }
}

TEST_F(GraphModelTest, ThreadsDoNotChangeABit) {
  for (const char* const name : {"dlrm", "ffnn_batch_norm", "din"}) {
    ModelCase c = as_graph(model_named(name));
    if (c.model.activation != "none") c.model.dropout = 0.2;
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

TEST_F(GraphModelTest, ABatchThatIsNotAppliedChangesNoStatistics) {
  const ModelCase c = as_graph(model_named("ffnn_batch_norm"));
  const auto network = make_network(c, pool_);
  const Snapshot before = snapshot(*network);
  Batch(c.shape, 100, 1).run(*network, 1);
  EXPECT_EQ(snapshot(*network), before);
  network->apply(1);
  EXPECT_NE(snapshot(*network), before);
}

TEST_F(GraphModelTest, TheExportIsThatOfTheModel) {
  for (const ModelCase& c : all_models()) {
    EXPECT_EQ(make_network(as_graph(c), pool_)->to_torchscript(),
              make_network(c, pool_)->to_torchscript());
  }
}

TEST_F(GraphModelTest, ComputesInFp32Alone) {
  const ModelCase c = as_graph(model_named("dlrm"));
  try {
    DenseNetwork::create(c.model, {}, Precision::kBf16, c.shape, 1, pool_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_NE(std::string(error.what()).find("model.engine: graph"), std::string::npos);
  }
}

}  // namespace
}  // namespace satrap::dense
