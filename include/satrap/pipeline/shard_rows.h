#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/embedding/row_access.h"
#include "satrap/job/feature_spec.h"
#include "satrap/ps/step_client.h"
#include "satrap/table/table_spec.h"

namespace satrap::pipeline {

/// Rows on parameter-server shards. A request sends the keys, a wait receives the weights into the
/// memory that pooling reads, and an update sums the gradient of each key into the message to the
/// shards, which run the optimizer.
///
/// Functions of BatchRows may run in parallel, within StepClient's thread rules.
class ShardRows final : public embedding::RowAccess {
 public:
  /// `tables[i]` has TableId i. `client` and `pool` outlive it.
  ShardRows(const std::vector<job::FeatureSpec>& features,
            const std::vector<table::TableSpec>& tables,
            ps::StepClient& client,
            ThreadPool& pool);

  const embedding::FeatureLayout& layout() const override { return layout_; }
  ThreadPool& pool() const override { return pool_; }
  std::unique_ptr<embedding::BatchRows> make_rows() override;
  void stop() override { client_.stop(); }

 private:
  class Rows;

  const embedding::FeatureLayout layout_;
  std::vector<std::int64_t> dims_;  // [num_tables]
  ps::StepClient& client_;
  ThreadPool& pool_;
  std::vector<float> scratch_;  // of updates
};

}  // namespace satrap::pipeline
