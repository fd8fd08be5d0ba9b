#include "src/dense/torchscript.h"

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/dense/network_fixture.h"
#include "tests/support/temporary_directory.h"

namespace satrap::dense {
namespace {

std::vector<ModelCase> with_models_of_experts() {
  std::vector<ModelCase> cases = all_models();
  for (const ModelCase& c : models_of_experts()) cases.push_back(c);
  for (const ModelCase& c : models_of_losses()) cases.push_back(c);
  return cases;
}

/// Trains an exported network in parallel with the network itself.
class TorchScript : public testing::Test {
 protected:
  /// The module of `network` as a model of type torchscript.
  ModelCase exported(const ModelCase& c, DenseNetwork& network) const {
    const std::string path = folder_.path() + "/" + c.name + ".pt";
    write_file_atomic(path, network.to_torchscript());
    return {c.name, {.type = job::ModelType::kTorchScript, .path = path}, c.shape};
  }

  static void expect_near(std::span<const float> a, std::span<const float> b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-6) << i;
  }

  std::string error_of(const ModelCase& c) {
    try {
      make_network(c, pool_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  }

  TemporaryDirectory folder_;
  ThreadPool pool_{2};
};

TEST_F(TorchScript, AnExportedModelPredictsAsTheModel) {
  for (const ModelCase& c : with_models_of_experts()) {
    SCOPED_TRACE(c.name);
    const auto network = make_network(c, pool_);
    Batch batch(c.shape, 700, 3);
    for (std::int64_t step = 1; step < 4; ++step) {  // gives running statistics
      batch.run(*network, step);
      network->apply(step);
    }
    const auto scripted = make_network(exported(c, *network), pool_);
    Batch other(c.shape, 700, 3);
    batch.predict(*network);
    other.predict(*scripted);
    expect_near(batch.probabilities, other.probabilities);
  }
}

TEST_F(TorchScript, AnExportedModelTrainsAsTheModel) {
  for (const ModelCase& c : with_models_of_experts()) {
    if (c.model.batch_norm) continue;  // not trained in a module
    SCOPED_TRACE(c.name);
    const auto network = make_network(c, pool_);
    const auto scripted = make_network(exported(c, *network), pool_);
    for (std::int64_t step = 1; step < 4; ++step) {
      Batch batch(c.shape, 1100, static_cast<std::uint64_t>(step));
      Batch other = batch;
      const DenseResult result = batch.run(*network, step);
      EXPECT_NEAR(other.run(*scripted, step).loss, result.loss, 1e-6);
      expect_near(other.probabilities, batch.probabilities);
      expect_near(other.grad_pooled, batch.grad_pooled);
      expect_near(scripted->gradient(), network->gradient());
      network->apply(step);
      scripted->apply(step);
    }
  }
}

TEST_F(TorchScript, ATrainedModuleIsExportedWithItsNumbers) {
  const ModelCase c = all_models().back();
  const auto network = make_network(c, pool_);
  const ModelCase module = exported(c, *network);
  const auto trained = make_network(module, pool_);
  Batch batch(c.shape, 50, 3);
  batch.run(*trained);
  trained->apply(1);
  batch.predict(*trained);
  const auto again = make_network(exported(module, *trained), pool_);
  Batch other(c.shape, 50, 3);
  other.predict(*again);
  EXPECT_EQ(batch.probabilities, other.probabilities);
}

TEST_F(TorchScript, ThreadsDoNotChangeABit) {
  const ModelCase c = model_named("dlrm");
  const auto network = make_network(c, pool_);
  const ModelCase module = exported(c, *network);
  std::vector<Snapshot> states;
  for (const std::int64_t threads : {1, 3}) {
    ThreadPool pool(threads);
    const auto scripted = make_network(module, pool);
    for (std::int64_t step = 1; step < 4; ++step) {
      Batch(c.shape, 2000, static_cast<std::uint64_t>(step)).run(*scripted, step);
      scripted->apply(step);
    }
    states.push_back(snapshot(*scripted));
  }
  EXPECT_EQ(states[0], states[1]);
}

TEST_F(TorchScript, AModuleOfAnotherShapeIsRefusedWithBothShapes) {
  ModelCase c = model_named("dlrm");
  const auto network = make_network(c, pool_);
  c = exported(c, *network);
  c.shape.num_numeric = 6;
  EXPECT_NE(error_of(c).find("forward(numeric [2, 6], pooled [2, 40]) fails"), std::string::npos)
      << error_of(c);
}

TEST_F(TorchScript, AFileThatIsNoneIsRefusedByName) {
  const std::string path = folder_.path() + "/none.pt";
  const ModelCase c{"none", {.type = job::ModelType::kTorchScript, .path = path}, {2, {3}}};
  EXPECT_NE(error_of(c).find("model.path: '" + path + "'"), std::string::npos) << error_of(c);
  write_file_atomic(path, "no module");
  EXPECT_NE(error_of(c).find("cannot be loaded"), std::string::npos) << error_of(c);
}

}  // namespace
}  // namespace satrap::dense
