#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "satrap/backend/device.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/row_access.h"
#include "satrap/embedding/shared_cache.h"
#include "satrap/job/feature_spec.h"
#include "satrap/pipeline/shard_rows.h"
#include "satrap/ps/shard_client.h"
#include "satrap/table/table_spec.h"

namespace satrap::pipeline {

/// Rows on parameter-server shards, of which this rank keeps copies: as ShardRows, but a request
/// says how old the copies are, and only rows that the step needs newer are sent. Ranks share the
/// rows, and know nothing of each other's copies. The shards decide what may be kept, and what a
/// step reads is checked again here, where it is read.
///
/// Functions of BatchRows may run in parallel, within ShardClient's thread rules, except that
/// wait() of a step follows pool() of the step before. Evaluation reads past the copies.
class SharedRows final : public embedding::RowAccess {
 public:
  /// `tables[i]` has TableId i. The job of `client` keeps copies. `client`, `device` and `pool`
  /// outlive it.
  SharedRows(const std::vector<job::FeatureSpec>& features,
             const std::vector<table::TableSpec>& tables,
             ps::ShardClient& client,
             backend::Device& device,
             ThreadPool& pool,
             const embedding::SharedCache::Options& options);

  const embedding::FeatureLayout& layout() const override { return cache_.layout(); }
  ThreadPool& pool() const override { return uncached_.pool(); }
  std::unique_ptr<embedding::BatchRows> make_rows() override;
  std::int64_t look_ahead() const override { return cache_.look_ahead(); }
  void look_at(const data::Batch& batch, std::int64_t step) override {
    cache_.look_at(batch, step);
  }
  void stop() override;

  /// Any thread.
  embedding::CacheCounts counts() const;

 private:
  class Rows;

  ps::ShardClient& client_;
  ShardRows uncached_;
  embedding::SharedCache cache_;
};

}  // namespace satrap::pipeline
