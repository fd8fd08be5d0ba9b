#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "satrap/data/batch.h"
#include "satrap/job/feature_spec.h"
#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"
#include "satrap/table/table.h"
#include "tests/table/stored_weights.h"

namespace satrap::embedding {

inline constexpr std::uint64_t kTablesSeed = 7;

/// Embedding tables and their training as the definition says, one id at a time, without plans: a
/// map from key to row. Adds in the same order as TableRows, so the floats are the same to the bit.
class EmbeddingOracle {
 public:
  struct Row {
    std::vector<float> weights, state;
  };

  EmbeddingOracle(std::vector<job::FeatureSpec> features, const std::vector<table::Table*>& tables)
      : features_(std::move(features)), tables_(tables) {}

  std::map<Key, Row>& rows() { return rows_; }

  /// [num_examples][output columns]
  std::vector<float> forward(const data::Batch& batch) {
    std::vector<float> out;
    for (std::int64_t r = 0; r < batch.num_examples; ++r) {
      for (std::size_t f = 0; f < features_.size(); ++f) {
        const std::vector<float> pooled = pool(batch, f, r);
        out.insert(out.end(), pooled.begin(), pooled.end());
      }
    }
    return out;
  }

  std::vector<float> mask(const data::Batch& batch) const {
    std::vector<float> out;
    for (std::int64_t r = 0; r < batch.num_examples; ++r) {
      for (std::size_t f = 0; f < features_.size(); ++f) {
        if (features_[f].pooling != Pooling::kSequence) continue;
        const std::int64_t begin = batch.offsets[offset_index(batch, f, r)];
        const std::int64_t end = batch.offsets[offset_index(batch, f, r) + 1];
        for (std::int64_t i = 0; i < features_[f].max_length; ++i) {
          out.push_back(begin + i < end ? 1.0F : 0.0F);
        }
      }
    }
    return out;
  }

  void backward(const data::Batch& batch, std::span<const float> grad, std::int64_t step) {
    struct Uses {  // of a key in the batch
      std::vector<std::uint32_t> offsets;
      std::vector<float> coefficients;
    };
    std::map<Key, Uses> keys;
    std::size_t width = 0;
    for (const job::FeatureSpec& f : features_)
      width += dim_of(f) * static_cast<std::size_t>(f.max_length);
    std::size_t column = 0;
    for (std::size_t f = 0; f < features_.size(); ++f) {
      const job::FeatureSpec& feature = features_[f];
      const std::size_t dim = dim_of(feature);
      for (std::int64_t r = 0; r < batch.num_examples; ++r) {
        const std::vector<float> coefficients = coefficients_of(batch, f, r);
        const auto first = static_cast<std::size_t>(batch.offsets[offset_index(batch, f, r)]);
        for (std::size_t i = 0; i < coefficients.size(); ++i) {
          Uses& uses = keys[make_key(feature.table, batch.ids[first + i])];
          const std::size_t element = feature.pooling == Pooling::kSequence ? i : 0;
          uses.offsets.push_back(static_cast<std::uint32_t>(static_cast<std::size_t>(r) * width +
                                                            column + element * dim));
          uses.coefficients.push_back(coefficients[i]);
        }
      }
      column += dim * static_cast<std::size_t>(feature.max_length);
    }
    for (const auto& [key, uses] : keys) {
      const table::TableSpec& spec = tables_[static_cast<std::size_t>(table_of(key))]->spec();
      const std::int64_t count = std::ssize(uses.offsets);
      std::vector<float> sum(static_cast<std::size_t>(spec.dim)), scratch(2 * sum.size());
      reduce_segment({grad.data(), uses.offsets.data(), uses.coefficients.data(), count}, 0, count,
                     sum.data(), scratch.data(), spec.dim);
      const RowStep row_step(spec.optimizer, spec.schedule.factor(step), step);
      Row& row = row_of(key);
      with_optimizer(spec.optimizer.type, [&](auto type) {
        update_row<type()>(row_step, row.weights.data(), row.state.data(), sum.data(), spec.dim);
      });
      row.weights = table::stored(spec, kTablesSeed, key, step, row.weights);
    }
  }

 private:
  static std::size_t offset_index(const data::Batch& batch, std::size_t f, std::int64_t r) {
    return f * static_cast<std::size_t>(batch.num_examples) + static_cast<std::size_t>(r);
  }
  std::size_t dim_of(const job::FeatureSpec& feature) const {
    return static_cast<std::size_t>(tables_[static_cast<std::size_t>(feature.table)]->spec().dim);
  }

  Row& row_of(Key key) {
    const auto [it, is_new] = rows_.try_emplace(key);
    if (is_new) {
      const table::Table& table = *tables_[static_cast<std::size_t>(table_of(key))];
      std::vector<float> memory(static_cast<std::size_t>(table.row_bytes()) / sizeof(float));
      const auto row = reinterpret_cast<table::RowPointer>(memory.data());
      table.initialize_row(key, row);
      it->second.weights.resize(static_cast<std::size_t>(table.spec().dim));
      table.layout().read_weights(row, it->second.weights.data());
      const float* const state = table.layout().state_of(row);
      it->second.state.assign(state, state + table.layout().state_floats);
    }
    return it->second;
  }

  std::vector<float> coefficients_of(const data::Batch& batch,
                                     std::size_t f,
                                     std::int64_t r) const {
    const job::FeatureSpec& feature = features_[f];
    std::vector<float> w;
    for (std::int64_t i = batch.offsets[offset_index(batch, f, r)];
         i < batch.offsets[offset_index(batch, f, r) + 1]; ++i) {
      w.push_back(batch.id_weights.empty() ? 1.0F : batch.id_weights[static_cast<std::size_t>(i)]);
    }
    if (feature.pooling == Pooling::kSequence) {
      if (std::ssize(w) > feature.max_length)
        w.resize(static_cast<std::size_t>(feature.max_length));
      return w;
    }
    if (feature.pooling == Pooling::kSum) return w;
    float sum = 0.0F;
    for (const float x : w) sum += feature.pooling == Pooling::kMean ? x : x * x;
    if (feature.pooling == Pooling::kSqrtN) sum = std::sqrt(sum);
    const float scale = sum == 0.0F ? 0.0F : 1.0F / sum;
    for (float& x : w) x *= scale;
    return w;
  }

  std::vector<float> pool(const data::Batch& batch, std::size_t f, std::int64_t r) {
    const job::FeatureSpec& feature = features_[f];
    const std::size_t dim = dim_of(feature);
    std::vector<float> out(dim * static_cast<std::size_t>(feature.max_length));
    const std::vector<float> coefficients = coefficients_of(batch, f, r);
    const auto first = static_cast<std::size_t>(batch.offsets[offset_index(batch, f, r)]);
    for (std::size_t i = 0; i < coefficients.size(); ++i) {
      const Row& row = row_of(make_key(feature.table, batch.ids[first + i]));
      float* to = out.data() + (feature.pooling == Pooling::kSequence ? i * dim : 0);
      for (std::size_t d = 0; d < dim; ++d)
        to[d] = std::fma(coefficients[i], row.weights[d], to[d]);
    }
    return out;
  }

  const std::vector<job::FeatureSpec> features_;
  const std::vector<table::Table*> tables_;
  std::map<Key, Row> rows_;
};

}  // namespace satrap::embedding
