#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/data/batch.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/table_spec.h"

namespace satrap::embedding {

inline table::TableSpec table_spec(std::int64_t id,
                                   std::int64_t dim,
                                   RowOptimizerType type = RowOptimizerType::kAdagrad) {
  table::TableSpec spec;
  spec.name = concat("t", id);
  spec.id = static_cast<TableId>(id);
  spec.dim = dim;
  spec.optimizer.type = type;
  spec.optimizer.lr = 0.1F;
  return spec;
}

/// bags[f][e]: ids of feature f in example e.
inline data::Batch batch_of(const std::vector<std::vector<std::vector<std::uint64_t>>>& bags) {
  data::Batch batch;
  batch.num_features = std::ssize(bags);
  batch.num_examples = std::ssize(bags.front());
  batch.offsets = {0};
  for (const auto& feature : bags) {
    for (const auto& bag : feature) {
      batch.ids.insert(batch.ids.end(), bag.begin(), bag.end());
      batch.offsets.push_back(std::ssize(batch.ids));
    }
  }
  batch.labels.resize(static_cast<std::size_t>(batch.num_examples));
  return batch;
}

inline data::Batch random_batch(std::mt19937_64& random,
                                std::int64_t num_features,
                                std::int64_t num_examples,
                                std::int64_t max_bag,
                                std::uint64_t num_ids,
                                bool weighted) {
  std::vector<std::vector<std::vector<std::uint64_t>>> bags(
      static_cast<std::size_t>(num_features),
      std::vector<std::vector<std::uint64_t>>(static_cast<std::size_t>(num_examples)));
  for (auto& feature : bags) {
    for (auto& bag : feature) {
      bag.resize(random() % static_cast<std::uint64_t>(max_bag + 1));
      // Half of the ids are a few hot ones; the others include ids that need folding.
      for (auto& id : bag) id = random() % 2 == 0 ? random() % 3 : (random() % num_ids) << 40;
    }
  }
  data::Batch batch = batch_of(bags);
  if (weighted) {
    for (std::size_t i = 0; i < batch.ids.size(); ++i) {
      batch.id_weights.push_back(static_cast<float>(random() % 5) - 1.0F);
    }
  }
  return batch;
}

inline job::FeatureSpec feature(int table,
                                Pooling pooling = Pooling::kSum,
                                std::int64_t max_length = 1) {
  return {.name = "f",
          .table = static_cast<TableId>(table),
          .pooling = pooling,
          .max_length = max_length};
}

}  // namespace satrap::embedding
