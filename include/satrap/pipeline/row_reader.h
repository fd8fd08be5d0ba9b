#pragma once

#include <memory>

#include "satrap/data/batch.h"
#include "satrap/embedding/planner.h"
#include "satrap/embedding/row_access.h"
#include "satrap/pipeline/pooled_batch.h"

namespace satrap::pipeline {

/// Lookups outside of training: of the rows as they are, without creating any. It may be used while
/// a driver plans later steps. One thread at a time.
class RowReader {
 public:
  /// Reads through access.reader(). `access` outlives it.
  explicit RowReader(embedding::RowAccess& access);

  /// `batch` outlives the use of `inputs`.
  void look_up(const data::Batch& batch, PooledBatch& inputs);

 private:
  embedding::RowAccess& access_;
  embedding::Planner planner_;
  const std::unique_ptr<embedding::BatchRows> rows_;
};

}  // namespace satrap::pipeline
