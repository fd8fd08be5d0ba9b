#include "src/dense/experts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "src/dense/aligned_buffer.h"

namespace satrap::dense {
namespace {

using Vector = std::vector<double>;

std::vector<std::string> names_of(const Layout& layout) {
  std::vector<std::string> names;
  for (const Parameter& p : layout.parameters()) names.push_back(p.name);
  return names;
}

TEST(Experts, OfMmoeAreSharedAndEachLabelHasAGate) {
  Layout layout;
  const Experts experts(layout, 3, 2, {.type = job::HeadsType::kMmoe, .experts = 2, .layers = {5}},
                        {});
  EXPECT_EQ(experts.out(), 5);
  EXPECT_EQ(names_of(layout),
            (std::vector<std::string>{"experts.0.shared.0.0.weight", "experts.0.shared.0.0.bias",
                                      "experts.0.shared.1.0.weight", "experts.0.shared.1.0.bias",
                                      "gate.0.label.0.weight", "gate.0.label.0.bias",
                                      "gate.0.label.1.weight", "gate.0.label.1.bias"}));
}

TEST(Experts, OfPleAlsoBelongToLabelsAndEveryLevelButTheLastHasASharedGate) {
  Layout layout;
  const Experts experts(
      layout, 3, 2, {.type = job::HeadsType::kPle, .experts = 1, .layers = {5}, .levels = 2}, {});
  std::vector<std::string> weights = names_of(layout);
  std::erase_if(weights, [](const std::string& name) { return name.ends_with("bias"); });
  EXPECT_EQ(
      weights,
      (std::vector<std::string>{
          "experts.0.shared.0.0.weight", "experts.0.label.0.0.0.weight",
          "experts.0.label.1.0.0.weight", "gate.0.label.0.weight", "gate.0.label.1.weight",
          "gate.0.shared.weight", "experts.1.shared.0.0.weight", "experts.1.label.0.0.0.weight",
          "experts.1.label.1.0.0.weight", "gate.1.label.0.weight", "gate.1.label.1.weight"}));
}

/// The papers' formulas for one example, from the parameters by name.
class Oracle {
 public:
  Oracle(const Layout& layout, const AlignedBuffer& values, const job::HeadsConfig& config)
      : config_(config) {
    for (const Parameter& p : layout.parameters()) {
      parameters_[p.name].assign(values.data() + p.offset, values.data() + p.offset + p.size());
    }
  }

  std::vector<Vector> labels(const Vector& x, std::size_t num_labels) const {
    std::vector<Vector> of_labels(num_labels, x);
    Vector shared = x;
    for (std::int64_t level = 0; level < config_.levels; ++level) {
      const std::string number = std::to_string(level);
      const std::vector<Vector> common = experts("experts." + number + ".shared.", shared);
      std::vector<Vector> all = common;
      for (std::size_t l = 0; l < num_labels; ++l) {
        const std::string label = number + ".label." + std::to_string(l);
        std::vector<Vector> weighed = common;
        for (const Vector& own : experts("experts." + label + ".", of_labels[l])) {
          weighed.push_back(own);
          all.push_back(own);
        }
        of_labels[l] = gated("gate." + label, of_labels[l], weighed);
      }
      if (level + 1 < config_.levels) shared = gated("gate." + number + ".shared", shared, all);
    }
    return of_labels;
  }

 private:
  Vector linear(const std::string& name, const Vector& x) const {
    Vector y = parameters_.at(name + ".bias");
    const Vector& weight = parameters_.at(name + ".weight");
    for (std::size_t i = 0; i < y.size(); ++i) {
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += weight[i * x.size() + j] * x[j];
    }
    return y;
  }

  std::vector<Vector> experts(const std::string& prefix, const Vector& x) const {
    std::vector<Vector> outputs;
    while (parameters_.contains(prefix + std::to_string(outputs.size()) + ".0.weight")) {
      Vector y = x;
      for (std::size_t layer = 0; layer < config_.layers.size(); ++layer) {
        y = linear(prefix + std::to_string(outputs.size()) + "." + std::to_string(layer), y);
        for (double& value : y) value = std::max(value, 0.0);
      }
      outputs.push_back(y);
    }
    return outputs;
  }

  Vector gated(const std::string& gate, const Vector& x, const std::vector<Vector>& vectors) const {
    Vector weights = linear(gate, x), sum(vectors[0].size());
    EXPECT_EQ(weights.size(), vectors.size()) << gate;
    double total = 0.0;
    for (double& weight : weights) total += weight = std::exp(weight);
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += weights[i] / total * vectors[i][c];
    }
    return sum;
  }

  const job::HeadsConfig config_;
  std::map<std::string, Vector> parameters_;
};

TEST(Experts, GiveWhatThePapersSay) {
  constexpr std::int64_t kRows = 9, kIn = 7, kNumLabels = 3;
  using enum job::HeadsType;
  const std::vector<job::HeadsConfig> configs = {
      {.type = kMmoe, .experts = 4, .layers = {6}},
      {.type = kPle, .experts = 2, .layers = {8, 5}, .experts_per_label = 3},
      {.type = kPle, .experts = 1, .layers = {5}, .experts_per_label = 2, .levels = 3}};
  for (const job::HeadsConfig& config : configs) {
    SCOPED_TRACE(concat(word_of(config.type, job::kHeadsTypes), " ", config.levels));
    Layout layout;
    const Experts experts(layout, kIn, kNumLabels, config, {});
    const AlignedBuffer parameters(layout.num_parameters()), x(kRows * kIn);
    const RandomStream random{5}, inputs{3};
    for (std::uint64_t i = 0; i < parameters.span().size(); ++i) {
      parameters.data()[i] = random.uniform(i) - 0.4F;
    }
    for (std::uint64_t i = 0; i < kRows * kIn; ++i) x.data()[i] = 2 * inputs.uniform(i) - 1;
    Pass pass(layout, parameters.data(), nullptr, kRows, Precision::kFp32);
    pass.begin({.num_examples = kRows});
    experts.forward(pass, ConstMatrix(x.data(), kRows, kIn));

    const Oracle oracle(layout, parameters, config);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const Vector row(x.data() + r * kIn, x.data() + (r + 1) * kIn);
      const std::vector<Vector> expected = oracle.labels(row, kNumLabels);
      for (std::int64_t l = 0; l < kNumLabels; ++l) {
        for (std::int64_t c = 0; c < experts.out(); ++c) {
          const double value = expected[static_cast<std::size_t>(l)][static_cast<std::size_t>(c)];
          EXPECT_NEAR(experts.output(pass, l).row(r)[c], value, 1e-5 * (1 + value))
              << "label " << l << " row " << r;
        }
      }
    }
  }
}

}  // namespace
}  // namespace satrap::dense
