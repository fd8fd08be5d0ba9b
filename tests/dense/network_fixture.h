#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/hash.h"
#include "satrap/core/thread_pool.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {

/// One example of every model, small, with a shape it takes.
struct ModelCase {
  std::string name;
  ModelConfig model;
  InputShape shape;
};

inline std::vector<ModelCase> all_models() {
  ModelConfig logistic{.type = "logistic"};
  ModelConfig deepfm{.type = "deepfm", .hidden = {24, 16}};
  ModelConfig dcn_v2{.type = "dcn_v2", .hidden = {24, 16}, .cross_layers = 2};
  ModelConfig dlrm{.type = "dlrm", .bottom = {24}, .top = {32, 16}};
  ModelConfig ffnn{.type = "ffnn", .bottom = {12}, .sparse = {20}, .top = {16}};
  ModelConfig persia = ffnn;
  persia.activation = "none";
  persia.batch_norm = true;
  return {{"logistic", logistic, {5, {1, 1, 1}}}, {"deepfm", deepfm, {5, {9, 9, 9, 9}}},
          {"dcn_v2", dcn_v2, {5, {4, 8, 3}}},     {"dlrm", dlrm, {5, {8, 8, 8, 8, 8}}},
          {"ffnn", ffnn, {5, {4, 6, 3}}},         {"ffnn_batch_norm", persia, {5, {4, 6, 3}}}};
}

/// A batch of seeded random numbers, and room for the outputs.
struct Batch {
  std::int64_t rows;
  std::vector<float> numeric, pooled, labels, probabilities, grad_pooled;

  Batch(const InputShape& shape, std::int64_t num_rows, std::uint64_t seed) : rows(num_rows) {
    const auto fill = [&](std::vector<float>& values, std::int64_t width, std::uint64_t what) {
      const RandomStream random{hash64(seed, what)};
      values.resize(static_cast<std::size_t>(num_rows * width));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.uniform(i) - 1;
    };
    fill(numeric, shape.num_numeric, 1);
    fill(pooled, shape.pooled_width(), 2);
    fill(labels, 1, 3);
    for (float& label : labels) label = label > 0.4F ? 1.0F : 0.0F;
    probabilities.resize(labels.size());
    grad_pooled.resize(pooled.size());
  }

  DenseInput input(std::int64_t step = 1) const { return {rows, numeric, pooled, labels, step}; }
  DenseResult run(DenseNetwork& network, std::int64_t step = 1) {
    return network.forward_backward(input(step), probabilities, grad_pooled);
  }
};

inline std::unique_ptr<DenseNetwork> make_network(const ModelCase& c,
                                                  ThreadPool& pool,
                                                  const DenseOptimizerConfig& optimizer = {},
                                                  Precision precision = Precision::kFp32,
                                                  std::uint64_t seed = 7) {
  return DenseNetwork::create(c.model, optimizer, precision, c.shape, seed, pool);
}

inline DenseOptimizerConfig optimizer_of(const std::string& type, double lr) {
  DenseOptimizerConfig config;
  config.type = type;
  config.lr = lr;
  return config;
}

using Snapshot = std::map<std::string, std::vector<float>>;

inline Snapshot snapshot(DenseNetwork& network) {
  Snapshot values;
  for (const auto& tensor : network.state()) {
    values[tensor.name].assign(tensor.values.begin(), tensor.values.end());
  }
  return values;
}

inline void restore(DenseNetwork& network, const Snapshot& values) {
  for (const auto& tensor : network.state()) {
    std::ranges::copy(values.at(tensor.name), tensor.values.begin());
  }
}

/// The parameters alone, flat, in their order; writable.
inline std::vector<float*> parameters(DenseNetwork& network) {
  std::vector<float*> pointers;
  for (const auto& tensor : network.state()) {
    for (float& value : tensor.values) {
      if (std::ssize(pointers) < network.num_parameters()) pointers.push_back(&value);
    }
  }
  return pointers;
}

}  // namespace satrap::dense
