#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/hash.h"
#include "satrap/core/thread_pool.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {

/// A small case of every model, with a shape that it takes.
struct ModelCase {
  std::string name;
  job::ModelConfig model;
  InputShape shape;
};

inline std::vector<ModelCase> all_models() {
  job::ModelConfig logistic{.type = job::ModelType::kLogistic};
  job::ModelConfig fm{.type = job::ModelType::kFm};
  job::ModelConfig wide_deep{.type = job::ModelType::kWideDeep, .hidden = {24, 16}};
  job::ModelConfig deepfm{.type = job::ModelType::kDeepFm, .hidden = {24, 16}};
  job::ModelConfig dcn_v2{.type = job::ModelType::kDcnV2, .hidden = {24, 16}, .cross_layers = 2};
  job::ModelConfig dlrm{.type = job::ModelType::kDlrm, .bottom = {24}, .top = {32, 16}};
  job::ModelConfig ffnn{.type = job::ModelType::kFfnn, .bottom = {12}, .sparse = {20}, .top = {16}};
  job::ModelConfig persia = ffnn;
  persia.activation = job::Activation::kNone;
  persia.batch_norm = true;
  job::ModelConfig din{.type = job::ModelType::kDin,
                       .top = {16},
                       .attention = {12, 6},
                       .attend = {{.sequence = "history", .query = "item"}}};
  job::ModelConfig dins = din;
  dins.attend = {{"history", "item"}, {"seen", "item"}, {"history", "user"}};
  const InputShape sequences{
      .num_numeric = 8,  // three numbers and two masks
      .field_widths = {4, 4, 4, 4, 4, 4, 4, 3},
      .field_names = {"history", "history", "history", "item", "user", "seen", "seen", "age"},
      .sequences = {{.first_field = 0, .length = 3, .mask_column = 3},
                    {.first_field = 5, .length = 2, .mask_column = 6}}};
  return {{"logistic", logistic, {5, {1, 1, 1}}},
          {"deepfm", deepfm, {5, {9, 9, 9, 9}}},
          {"fm", fm, {5, {9, 9, 9, 9}}},
          {"wide_deep", wide_deep, {5, {9, 9, 9, 9}}},
          {"dcn_v2", dcn_v2, {5, {4, 8, 3}}},
          {"dlrm", dlrm, {5, {8, 8, 8, 8, 8}}},
          {"ffnn", ffnn, {5, {4, 6, 3}}},
          {"ffnn_batch_norm", persia, {5, {4, 6, 3}}},
          {"din", din, sequences},
          {"din_of_several", dins, sequences}};
}

/// Models with three labels of unequal weight, with and without hidden layers per label.
inline std::vector<ModelCase> models_of_several_labels() {
  std::vector<ModelCase> models;
  for (ModelCase c : all_models()) {
    using enum job::ModelType;
    const job::ModelType type = c.model.type;
    if (type != kDcnV2 && type != kDlrm && type != kFfnn && type != kDin) continue;
    c.shape.label_weights = {1.0F, 0.25F, 3.0F};
    c.name += "_of_labels";
    models.push_back(c);
    c.model.head = {6, 5};
    c.name += "_with_heads";
    models.push_back(c);
  }
  return models;
}

/// Models with three labels whose heads read mixtures of experts: with and without a shared part
/// and hidden layers per label, at one level and at several.
inline std::vector<ModelCase> models_of_experts() {
  using enum job::HeadsType;
  const job::HeadsConfig mmoe{.type = kMmoe, .experts = 3, .layers = {10}};
  const job::HeadsConfig ple{.type = kPle, .experts = 2, .layers = {9, 7}, .experts_per_label = 2};
  job::HeadsConfig levels = ple;
  levels.experts = levels.experts_per_label = 1;
  levels.levels = 3;
  std::vector<ModelCase> models;
  const auto add = [&](const std::string& name, const job::HeadsConfig& heads) -> ModelCase& {
    for (ModelCase c : all_models()) {
      if (c.name != name) continue;
      c.name += "_of_" + std::string(word_of(heads.type, job::kHeadsTypes));
      c.shape.label_weights = {1.0F, 0.25F, 3.0F};
      c.model.heads = heads;
      models.push_back(c);
    }
    return models.back();
  };
  add("dcn_v2", ple).model.head = {6, 5};
  add("ffnn", mmoe).model.top = {};  // the experts read what two towers give
  add("ffnn_batch_norm", ple).model.head = {6};
  add("dlrm", mmoe);
  add("din", levels).name += "_of_levels";
  add("ffnn", levels).model.top = {};
  return models;
}

/// Models of a number, of numbers beside labels of 0 and 1, and of classes.
inline std::vector<ModelCase> models_of_losses() {
  using enum job::Loss;
  std::vector<ModelCase> models;
  const auto add = [&](const std::string& name, const std::string& what) -> ModelCase& {
    for (ModelCase c : all_models()) {
      if (c.name != name) continue;
      c.name += "_of_" + what;
      models.push_back(c);
    }
    return models.back();
  };
  for (const char* const name : {"logistic", "deepfm", "dlrm", "ffnn_batch_norm"}) {
    ModelCase& c = add(name, "a_number");
    c.shape.label_weights = {2.0F};
    c.shape.losses = {kMse};
  }
  for (const char* const name : {"dcn_v2", "ffnn"}) {
    ModelCase& c = add(name, "mixed_labels");
    c.model.head = {6, 5};
    c.shape.label_weights = {1.0F, 0.25F, 3.0F};
    c.shape.losses = {kBce, kMse, kBce};
  }
  ModelCase& mixed = add("dlrm", "mixed_labels");
  mixed.model.heads = {.type = job::HeadsType::kMmoe, .experts = 3, .layers = {10}};
  mixed.shape.label_weights = {0.5F, 1.0F};
  mixed.shape.losses = {kMse, kBce};
  for (const char* const name : {"dcn_v2", "dlrm", "ffnn_batch_norm", "din"}) {
    ModelCase& c = add(name, "classes");
    if (c.model.type == job::ModelType::kDlrm) c.model.head = {8};
    c.shape.label_weights = {2.0F};
    c.shape.losses = {kSoftmax};
    c.shape.num_classes = 5;
  }
  return models;
}

inline bool has_mlp(const ModelCase& c) {
  return c.model.type != job::ModelType::kLogistic && c.model.type != job::ModelType::kFm;
}

inline ModelCase model_named(const std::string& name) {
  const std::vector<ModelCase> models = all_models();
  return *std::ranges::find(models, name, &ModelCase::name);
}

/// A batch of seeded random numbers, and room for the outputs.
struct Batch {
  std::int64_t rows;
  std::vector<float> numeric, pooled, labels, probabilities, grad_pooled;
  std::vector<float> weights = {};  // empty: those of the labels

  Batch(const InputShape& shape, std::int64_t num_examples, std::uint64_t seed)
      : rows(num_examples) {
    const auto fill = [&](std::vector<float>& values, std::int64_t width, std::uint64_t what) {
      const RandomStream random{hash64(seed, what)};
      values.resize(static_cast<std::size_t>(num_examples * width));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.uniform(i) - 1;
    };
    fill(numeric, shape.num_numeric, 1);
    fill(pooled, shape.pooled_width(), 2);
    fill(labels, shape.num_labels(), 3);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = label_of(shape, i, labels[i]);
    for (const InputShape::Sequence& sequence : shape.sequences) {
      make_mask(sequence, shape.num_numeric, hash64(seed, 4));
    }
    probabilities.resize(static_cast<std::size_t>(num_examples * shape.num_outputs()));
    grad_pooled.resize(pooled.size());
  }

  /// From a number between -1 and 1.
  static float label_of(const InputShape& shape, std::size_t i, float random) {
    if (shape.num_classes > 0) {
      const auto num_classes = static_cast<float>(shape.num_classes);
      return std::min(std::floor(0.5F * (random + 1.0F) * num_classes), num_classes - 1.0F);
    }
    const bool is_number =
        !shape.losses.empty() && shape.losses[i % shape.losses.size()] == job::Loss::kMse;
    if (is_number) return 2.0F * random - 0.5F;
    return random > 0.4F ? 1.0F : 0.0F;
  }

  // Sequences of every length from 0. The values after their ends stay random: nothing may read
  // them.
  void make_mask(const InputShape::Sequence& sequence, std::int64_t stride, std::uint64_t seed) {
    const RandomStream random{seed};
    for (std::int64_t r = 0; r < rows; ++r) {
      const float length =
          random.uniform(static_cast<std::uint64_t>(r)) * static_cast<float>(sequence.length + 1);
      for (std::int64_t i = 0; i < sequence.length; ++i) {
        numeric[static_cast<std::size_t>(r * stride + sequence.mask_column + i)] =
            static_cast<float>(i + 1) <= length ? 1.0F : 0.0F;
      }
    }
  }

  /// Whole factors of the labels' weights; labels of weight 0 are missing.
  void weigh(const InputShape& shape, std::uint64_t seed) {
    const RandomStream random{seed};
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const float times = std::floor(4 * random.uniform(i));
      weights.push_back(times * shape.label_weights[i % shape.label_weights.size()]);
      if (times == 0.0F) labels[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }

  ConstFloatMatrix matrix(const std::vector<float>& values) const {
    return host_matrix(std::span(values), rows, columns_of(values));
  }
  FloatMatrix matrix(std::vector<float>& values) const {
    return host_matrix(std::span(values), rows, columns_of(values));
  }
  DenseInput input(std::int64_t step = 1) const {
    DenseInput input{rows, matrix(numeric), matrix(pooled), matrix(labels), step};
    if (!weights.empty()) input.weights = matrix(weights);
    return input;
  }
  DenseOutput output() { return {matrix(probabilities), matrix(grad_pooled)}; }
  DenseResult run(DenseNetwork& network, std::int64_t step = 1) {
    network.forward_backward(input(step), output());
    return network.finish();
  }
  void predict(DenseNetwork& network) { network.predict(input(), matrix(probabilities)); }

 private:
  std::int64_t columns_of(const std::vector<float>& values) const {
    return rows == 0 ? 0 : std::ssize(values) / rows;
  }
};

inline std::unique_ptr<DenseNetwork> make_network(const ModelCase& c,
                                                  ThreadPool& pool,
                                                  const job::DenseOptimizerConfig& optimizer = {},
                                                  Precision precision = Precision::kFp32,
                                                  std::uint64_t seed = 7) {
  return DenseNetwork::create(c.model, optimizer, precision, c.shape, seed, pool);
}

inline job::DenseOptimizerConfig optimizer_of(DenseOptimizerType type, double lr) {
  job::DenseOptimizerConfig config;
  config.type = type;
  config.lr = lr;
  return config;
}

using Snapshot = std::map<std::string, std::vector<float>>;

inline Snapshot snapshot(DenseNetwork& network) {
  Snapshot values;
  for (const auto& tensor : network.save()) values[tensor.name] = tensor.values;
  return values;
}

inline void restore(DenseNetwork& network, const Snapshot& values) {
  DenseNetwork::State state = network.save();
  for (auto& tensor : state) tensor.values = values.at(tensor.name);
  network.load(state);
}

/// The parameters alone, flat, in their order.
inline std::vector<float> parameters(DenseNetwork& network) {
  return network.save_training_state().parameters;
}

/// Names the instances of a suite over cases.
inline const auto name_of_case = [](const auto& test) { return test.param.name; };

}  // namespace satrap::dense
