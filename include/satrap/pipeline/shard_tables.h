#pragma once

#include <memory>

#include "satrap/core/thread_pool.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/embedding_tables.h"
#include "satrap/pipeline/shard_rows.h"
#include "satrap/ps/shard_client.h"

namespace satrap::pipeline {

/// Tables on the parameter-server shards of a cluster, shared by all its ranks.
class ShardTables final : public EmbeddingTables {
 public:
  /// `is_cached`: the rows change in a cache. `client`, `cluster` and `pool` outlive it.
  ShardTables(const job::EmbeddingSpecs& specs,
              const job::TrainConfig& train,
              Cluster& cluster,
              ps::ShardClient& client,
              bool is_cached,
              ThreadPool& pool);

  void begin(const InitialRows& rows) override;
  embedding::RowAccess& access() override { return access_; }
  std::unique_ptr<StepDriver> make_driver(StepQueue& queue,
                                          StepDriver::Options options,
                                          StageTimers& timers) override;
  std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) override;
  Size size() override;

 private:
  const job::TrainConfig train_;
  Cluster& cluster_;
  ps::ShardClient& client_;
  const bool is_cached_;
  ShardRows access_;
};

}  // namespace satrap::pipeline
