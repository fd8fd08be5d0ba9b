#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/plan.h"
#include "satrap/job/feature_spec.h"
#include "satrap/table/table.h"

namespace satrap::embedding {

/// The embedding side of training over tables in this process: plan, forward, backward (the
/// design's four stages without a cache). Works on the tables' rows in place.
///
/// Pooled output: [num_rows, output_width] row-major. Mask output: [num_rows, mask_width]: 1 where
/// a sequence has an element, 0 where it is padded. Columns: FeatureLayout.
///
/// Thread rules: plan() and plan_without_insert() one at a time; forward() and backward() one at a
/// time; a plan may be made beside forward() or backward(). Loops run on `pool`; results do not
/// depend on its size.
class EmbeddingWorker {
 public:
  /// `tables[i]` has TableId i. All outlive the worker.
  EmbeddingWorker(const std::vector<job::FeatureSpec>& features,
                  std::vector<table::Table*> tables,
                  ThreadPool& pool);
  ~EmbeddingWorker();

  std::int64_t output_width() const;
  std::int64_t mask_width() const;

  /// Finds the rows of `batch`; creates missing ones, after tables with limits have lost those that
  /// go before `step`. batch.num_features must equal the features'. With limits: steps in ascending
  /// order, and the plan holds until RowLimits::pinned_steps steps later.
  void plan(const data::Batch& batch, Plan& plan, std::int64_t step = 1);

  /// As plan, for evaluation: tables stay as they are, and rows are those of the last backward or
  /// skip, however many plans have been made since; a missing row is replaced by its initial
  /// weights, kept in `missing` (in memory that lives as long as it does).
  void plan_without_insert(const data::Batch& batch,
                           Plan& plan,
                           std::vector<std::byte>& missing) const;

  /// Gathers and pools. Overwrites both outputs.
  void forward(const Plan& plan,
               const data::Batch& batch,
               std::span<float> pooled,       // [num_rows, output_width]
               std::span<float> mask) const;  // [num_rows, mask_width]

  /// Sums the gradient of each key over its occurrences, in order, and applies its table's
  /// optimizer with the learning rate of `step` (from 1).
  void backward(const Plan& plan,
                std::span<const float> grad_pooled,  // [num_rows, output_width]
                std::int64_t step);

  /// Instead of backward: the step leaves all rows as they are.
  void skip(const Plan& plan, std::int64_t step);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::embedding
