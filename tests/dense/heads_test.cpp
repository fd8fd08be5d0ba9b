#include "src/dense/heads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "src/dense/aligned_buffer.h"
#include "tests/dense/network_fixture.h"
#include "tests/support/temporary_directory.h"

namespace satrap::dense {
namespace {

std::string error_of(const ModelCase& c) {
  ThreadPool pool(1);
  try {
    make_network(c, pool);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

std::vector<float> column(std::span<const float> values, std::size_t cols, std::size_t c) {
  std::vector<float> picked;
  for (std::size_t i = c; i < values.size(); i += cols) picked.push_back(values[i]);
  return picked;
}

// ------------------------------------------------------------------------------ one label

/// The results of one or several layers for the same input, from the same parameters.
struct Computed {
  std::vector<std::string> names;
  std::vector<float> logits, gradients, dx;
  friend bool operator==(const Computed&, const Computed&) = default;
};

template <class Layers, class Backward>
Computed compute(const Layout& layout,
                 const Layers& layers,
                 ScratchId logits_id,
                 const Backward& backward) {
  constexpr std::int64_t kRows = 37, kIn = 19;
  const AlignedBuffer parameters(layout.num_parameters()), x(kRows * kIn), dx(kRows * kIn);
  for (std::uint64_t i = 0; i < parameters.span().size(); ++i) {
    parameters.data()[i] = RandomStream{5}.uniform(i) - 0.5F;
  }
  Pass pass(layout, parameters.data(), nullptr, kRows, Precision::kFp32);
  pass.begin({.num_examples = kRows, .training = true, .dropout_seed = 11});
  for (std::uint64_t i = 0; i < kRows * kIn; ++i) {
    x.data()[i] = 2 * RandomStream{3}.uniform(i) - 1;
  }
  const Matrix logits = pass.scratch(logits_id);
  layers.forward(pass, ConstMatrix(x.data(), kRows, kIn), logits);
  Computed result;
  result.logits.assign(logits.data, logits.data + kRows);
  backward(pass, ConstMatrix(x.data(), kRows, kIn), logits, Matrix(dx.data(), kRows, kIn));
  for (const Parameter& p : layout.parameters()) result.names.push_back(p.name);
  result.gradients.assign(pass.gradients().data(),
                          pass.gradients().data() + layout.num_parameters());
  result.dx.assign(dx.data(), dx.data() + dx.size());
  return result;
}

TEST(Heads, TheTopOfOneLabelIsTheMlpThatEndsInIt) {
  for (const std::vector<std::int64_t>& widths :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{8}, {16, 12, 7}}) {
    Layout mlp_layout, top_layout;
    const ScratchId mlp_logits = mlp_layout.add_scratch(1), top_logits = top_layout.add_scratch(1);
    std::vector<std::int64_t> with_last = widths;
    with_last.push_back(1);
    const Mlp mlp(mlp_layout, "top", 19, with_last, {.relu_last = false, .dropout = 0.4});
    const Top top(top_layout, "top", 19, widths, Output{}, {.dropout = 0.4});
    const Computed expected = compute(mlp_layout, mlp, mlp_logits,
                                      [&](Pass& pass, ConstMatrix x, Matrix logits, Matrix dx) {
                                        mlp.backward(pass, x, ConstMatrix(), logits, dx);
                                      });
    const Computed computed = compute(top_layout, top, top_logits,
                                      [&](Pass& pass, ConstMatrix x, Matrix logits, Matrix dx) {
                                        top.backward(pass, x, logits, dx);
                                      });
    EXPECT_EQ(computed.names, expected.names);
    EXPECT_TRUE(computed == expected) << widths.size() << " hidden layers";
  }
}

TEST(Heads, HiddenLayersOfAHeadAreNamedByTheirLabel) {
  Layout layout;
  const Top top(layout, "top", 3, {4}, {.num_labels = 2, .hidden = {5}}, {});
  std::vector<std::string> names;
  for (const Parameter& p : layout.parameters()) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"top.0.weight", "top.0.bias", "head.0.0.weight",
                                             "head.0.0.bias", "head.0.1.weight", "head.0.1.bias",
                                             "head.1.0.weight", "head.1.0.bias", "head.1.1.weight",
                                             "head.1.1.bias"}));
}

/// [least, most] of the values that the parameter starts with.
std::pair<float, float> start_of(const Layout& layout, const std::string& name) {
  const AlignedBuffer all(layout.num_parameters());
  layout.initialize(1, all.span(), {});
  for (const Parameter& p : layout.parameters()) {
    if (p.name != name) continue;
    const auto [least, most] = std::ranges::minmax(
        all.span().subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.size())));
    return {least, most};
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

void expect_fills(std::pair<float, float> start, float range) {
  EXPECT_GE(start.first, -range);
  EXPECT_LT(start.first, -0.98F * range);
  EXPECT_LE(start.second, range);
  EXPECT_GT(start.second, 0.98F * range);
}

TEST(Heads, TheirLogitsStartInGlorotsRangeAndOtherLayersInPytorchs) {
  Layout plain, top, several;
  const Heads of_plain(plain, "final", 599, Output{}, {});
  expect_fills(start_of(plain, "final.weight"), 0.1F);  // sqrt(6 / (599 + 1))
  EXPECT_LE(std::abs(start_of(plain, "final.bias").first), 1 / std::sqrt(599.0F));
  const Top of_top(top, "top", 400, {599}, Output{}, {});
  expect_fills(start_of(top, "top.0.weight"), 0.05F);  // 1 / sqrt(400)
  expect_fills(start_of(top, "top.0.bias"), 0.05F);
  expect_fills(start_of(top, "top.1.weight"), 0.1F);
  const Heads of_several(several, "final", 400, {.num_labels = 2, .hidden = {599}}, {});
  expect_fills(start_of(several, "head.1.0.weight"), 0.05F);
  expect_fills(start_of(several, "head.1.1.weight"), 0.1F);
}

// ------------------------------------------------------------------------------ several labels

class Labels : public testing::TestWithParam<ModelCase> {
 protected:
  /// The network of label `l` alone, with the parameters of that label in the network of several.
  std::unique_ptr<DenseNetwork> alone(DenseNetwork& network, std::size_t l) {
    ModelCase c = GetParam();
    c.shape.label_weights = {1.0F};
    auto one =
        make_network(c, pool_, optimizer_of(DenseOptimizerType::kSgd, 0.1), Precision::kFp32, 99);
    const Snapshot values = snapshot(network);
    DenseNetwork::State state = one->save();
    for (auto& tensor : state) {
      tensor.values = values.at(name_among_several(tensor.name, l, c.model.head.empty()));
    }
    one->load(state);
    return one;
  }

  /// One label without hidden layers ends in the last layer of "top", or in "final".
  static std::string name_among_several(const std::string& name, std::size_t l, bool plain) {
    const std::string head = "head." + std::to_string(l);
    if (name.starts_with("head.0")) return head + name.substr(std::string("head.0").size());
    const std::string last = GetParam().model.type == job::ModelType::kDcnV2
                                 ? "final"
                                 : "top." + std::to_string(GetParam().model.top.size());
    if (plain && name.starts_with(last + ".")) return head + ".0" + name.substr(last.size());
    return name;
  }

  ThreadPool pool_{2};
};

TEST_P(Labels, LossAndGradientsAreTheWeightedSumsOfTheLabels) {
  const ModelCase& c = GetParam();
  const auto network = make_network(c, pool_, optimizer_of(DenseOptimizerType::kSgd, 0.1));
  Batch batch(c.shape, 150, 1);
  const DenseResult result = batch.run(*network);
  double loss = 0.0;
  std::vector<float> grad_pooled(batch.grad_pooled.size());
  InputShape of_one = c.shape;
  of_one.label_weights = {1.0F};
  for (std::size_t l = 0; l < 3; ++l) {
    const auto one = alone(*network, l);
    Batch single(of_one, 150, 1);
    single.labels = column(batch.labels, 3, l);
    const float weight = c.shape.label_weights[l];
    loss += static_cast<double>(weight) * single.run(*one).loss;
    const std::vector<float> probabilities = column(batch.probabilities, 3, l);
    for (std::size_t r = 0; r < probabilities.size(); ++r) {
      ASSERT_NEAR(probabilities[r], single.probabilities[r], 1e-6) << "label " << l;
    }
    for (std::size_t i = 0; i < grad_pooled.size(); ++i) {
      grad_pooled[i] += weight * single.grad_pooled[i];
    }
  }
  EXPECT_NEAR(result.loss, loss, 1e-6);
  for (std::size_t i = 0; i < grad_pooled.size(); ++i) {
    ASSERT_NEAR(batch.grad_pooled[i], grad_pooled[i], 1e-6) << i;
  }
}

TEST_P(Labels, ResultsDoNotDependOnTheNumberOfThreads) {
  const auto bits_with = [&](std::int64_t threads) {
    ThreadPool pool(threads);
    const auto network = make_network(GetParam(), pool);
    Batch batch(GetParam().shape, 1300, 2);
    batch.run(*network);
    network->apply(1);
    return std::pair(snapshot(*network), batch.probabilities);
  };
  EXPECT_TRUE(bits_with(1) == bits_with(3));
}

TEST_P(Labels, AnExportedNetworkPredictsEach) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/module.pt";
  const auto network = make_network(GetParam(), pool_);
  write_file_atomic(path, network->to_torchscript());
  const ModelCase module{
      "", {.type = job::ModelType::kTorchScript, .path = path}, GetParam().shape};
  const auto scripted = make_network(module, pool_);
  Batch batch(GetParam().shape, 600, 3), other = batch;
  batch.predict(*network);
  other.predict(*scripted);
  ASSERT_EQ(batch.probabilities.size(), 1800U);
  for (std::size_t i = 0; i < batch.probabilities.size(); ++i) {
    ASSERT_NEAR(batch.probabilities[i], other.probabilities[i], 2e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models,
                         Labels,
                         testing::ValuesIn(models_of_several_labels()),
                         [](const auto& test) { return test.param.name; });

TEST(Heads, AModuleMustGiveALogitOfEachLabel) {
  ThreadPool pool(1);
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/one.pt";
  const ModelCase one = model_named("ffnn");
  write_file_atomic(path, make_network(one, pool)->to_torchscript());
  ModelCase two{"", {.type = job::ModelType::kTorchScript, .path = path}, one.shape};
  EXPECT_EQ(error_of(two), "");
  two.shape.label_weights = {1.0F, 1.0F};
  const std::string error = error_of(two);
  EXPECT_NE(error.find("wanted are 2 rows of 2 (one for each label or class) logits"),
            std::string::npos)
      << error;
}

TEST(Heads, ModelsWithATermPerIdTakeOneLabel) {
  for (const std::string name : {"logistic", "fm", "wide_deep", "deepfm"}) {
    ModelCase c = model_named(name);
    EXPECT_EQ(error_of(c), "");
    c.shape.label_weights = {1.0F, 1.0F};
    EXPECT_TRUE(error_of(c).starts_with("data.schema.labels: model '" + name + "'")) << error_of(c);
  }
}

TEST(Heads, ExpertsAreForSeveralLabelsAndNotTooMany) {
  ModelCase c = model_named("ffnn");
  c.model.heads = {
      .type = job::HeadsType::kPle, .experts = 22, .experts_per_label = 21, .levels = 12};
  EXPECT_TRUE(error_of(c).starts_with("model.heads: ple is for several labels")) << error_of(c);
  c.shape.label_weights = {1.0F, 1.0F, 1.0F};
  EXPECT_EQ(error_of(c), "");  // 12 * (22 + 3 * 21) = 1020
  c.model.heads.levels = 13;
  const std::string error = error_of(c);
  EXPECT_NE(error.find("over all levels and 3 labels, got 1105"), std::string::npos) << error;
}

TEST(Heads, ModelsWithoutHeadsRefuseTheirWidths) {
  ModelCase c = model_named("deepfm");
  c.model.head = {8};
  EXPECT_TRUE(error_of(c).starts_with("model.head is not used by type 'deepfm'")) << error_of(c);
}

}  // namespace
}  // namespace satrap::dense
