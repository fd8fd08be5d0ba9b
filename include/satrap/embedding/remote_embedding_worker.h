#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/plan.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/table_spec.h"

namespace satrap::embedding {

/// As EmbeddingWorker, for tables in other processes: it says which keys a batch needs, pools their
/// weights once they are there, and sums the gradient of each key; the shards run the optimizer.
/// Outputs, and their bits, are those of EmbeddingWorker.
///
/// Thread rules: plan() one at a time; forward() one at a time; reduce() one at a time; the three
/// beside each other. Loops run on `pool`; results do not depend on its size.
class RemoteEmbeddingWorker {
 public:
  /// `tables[i]` has TableId i.
  RemoteEmbeddingWorker(const std::vector<job::FeatureSpec>& features,
                        const std::vector<table::TableSpec>& tables,
                        ThreadPool& pool);
  ~RemoteEmbeddingWorker();

  std::int64_t output_width() const;
  std::int64_t mask_width() const;

  /// Everything of the plan but `rows`. The batch may be empty.
  void plan(const data::Batch& batch, Plan& plan);

  void forward(const Plan& plan,
               const data::Batch& batch,
               std::span<const float* const> weights,  // [num_unique], of [dim] floats
               std::span<float> pooled,                // [num_rows, output_width]
               std::span<float> mask) const;           // [num_rows, mask_width]

  /// Writes the gradient of each key, summed over its occurrences in order.
  void reduce(const Plan& plan,
              std::span<const float> grad_pooled,  // [num_rows, output_width]
              std::span<float* const> gradients);  // [num_unique], of [dim] floats

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::embedding
