#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "satrap/core/float_matrix.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/table_rows.h"

namespace satrap::embedding {

/// The shared axes of the benchmarks of the embedding path.
struct Shape {
  std::string name;
  std::vector<std::uint64_t> cardinalities;  // of the features, each with its own table
  std::int64_t ids_per_bag;
  std::int64_t dim;

  std::int64_t ids_per_row() const { return std::ssize(cardinalities) * ids_per_bag; }
};

inline const std::vector<std::uint64_t> kKaggleCardinalities = {
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};

/// 26 ids of one row each, as in Criteo Kaggle (tables cut at 1 M rows, as the peers').
inline Shape kaggle_shape(std::int64_t dim) {
  Shape shape{"dlrm_kaggle", kKaggleCardinalities, 1, dim};
  for (std::uint64_t& c : shape.cardinalities) c = std::min<std::uint64_t>(c, 1'000'000);
  return shape;
}

/// 26 bags of 10 ids, 2 M rows together: far more bytes than the caches hold.
inline Shape bound_shape(std::int64_t dim) {
  return {"embedding_bound", std::vector<std::uint64_t>(26, 76'923), 10, dim};
}

/// Ranks are bounded Zipf (s = 0.95, by the inverse of the continuous distribution function), as in
/// the peers' batches.
inline data::Batch zipf_batch(const Shape& shape,
                              std::int64_t num_examples,
                              std::mt19937_64& random) {
  constexpr double kExponent = 0.95;
  data::Batch batch;
  batch.num_examples = num_examples;
  batch.num_features = std::ssize(shape.cardinalities);
  batch.labels.resize(static_cast<std::size_t>(num_examples));
  batch.offsets = {0};
  std::uniform_real_distribution<double> uniform;
  for (const std::uint64_t cardinality : shape.cardinalities) {
    const double top = std::pow(static_cast<double>(cardinality + 1), 1 - kExponent) - 1;
    for (std::int64_t r = 0; r < num_examples; ++r) {
      for (std::int64_t i = 0; i < shape.ids_per_bag; ++i) {
        const double rank = std::pow(uniform(random) * top + 1, 1 / (1 - kExponent)) - 1;
        batch.ids.push_back(std::min(static_cast<std::uint64_t>(rank), cardinality - 1));
      }
      batch.offsets.push_back(std::ssize(batch.ids));
    }
  }
  return batch;
}

/// Tables with all their rows, and some batches to take in turn.
class Workload {
 public:
  Workload(const Shape& shape,
           RowOptimizerType optimizer,
           std::int64_t num_examples,
           std::int64_t num_batches,
           std::int64_t num_threads)
      : pool_(num_threads), rows(static_cast<std::size_t>(num_batches)) {
    std::vector<job::FeatureSpec> features;
    std::vector<table::Table*> pointers;
    for (std::size_t f = 0; f < shape.cardinalities.size(); ++f) {
      table::TableSpec spec;
      spec.name = "C" + std::to_string(f + 1);
      spec.id = static_cast<TableId>(f);
      spec.dim = shape.dim;
      spec.optimizer.type = optimizer;
      features.push_back({.name = spec.name, .table = spec.id});
      tables.push_back(std::make_unique<table::Table>(spec, 1));
      pointers.push_back(tables.back().get());
      fill(*tables.back(), shape.cardinalities[f]);
    }
    access_ = std::make_unique<TableRows>(features, pointers, pool_);
    planner = std::make_unique<Planner>(access_->layout(), pool_);
    std::mt19937_64 random(1);
    for (auto& batch_rows : rows) {
      batches.push_back(zipf_batch(shape, num_examples, random));
      batch_rows = access_->make_rows();
      batch_rows->make_plan(*planner, batches.back(), 1);
    }
    pooled.resize(num_examples, access_->layout().output_width);
    grad.resize(num_examples, access_->layout().output_width);
    for (float& g : grad.values()) g = std::uniform_real_distribution(-1e-3F, 1e-3F)(random);
  }

 private:
  static void fill(table::Table& table, std::uint64_t cardinality) {
    std::vector<Key> keys;
    std::vector<table::RowPointer> rows;
    for (std::uint64_t id = 0; id < cardinality; ++id) {
      keys.push_back(make_key(table.spec().id, id));
    }
    rows.resize(keys.size());
    table.find_or_insert(keys, rows);
  }

  ThreadPool pool_;
  std::unique_ptr<TableRows> access_;

 public:
  std::vector<std::unique_ptr<table::Table>> tables;
  std::unique_ptr<Planner> planner;
  std::vector<data::Batch> batches;
  std::vector<std::unique_ptr<BatchRows>> rows;  // of the batches
  HostMatrix pooled, grad;
};

}  // namespace satrap::embedding
