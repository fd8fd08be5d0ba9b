#pragma once

#include <memory>
#include <optional>

#include "satrap/backend/device.h"
#include "satrap/core/thread_pool.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/embedding_tables.h"
#include "satrap/pipeline/shard_rows.h"
#include "satrap/pipeline/shared_rows.h"
#include "satrap/ps/shard_client.h"

namespace satrap::pipeline {

/// Tables on the parameter-server shards of a cluster, shared by all its ranks.
class ShardTables final : public EmbeddingTables {
 public:
  struct Copies {
    embedding::SharedCache::Options options;
    backend::Device& device;
  };

  /// `is_cached`: the rows change in a cache. `copies`: this rank keeps copies of rows, as all
  /// ranks then do. `client`, `cluster`, `pool` and the device outlive it.
  ShardTables(const job::EmbeddingSpecs& specs,
              const job::TrainConfig& train,
              Cluster& cluster,
              ps::ShardClient& client,
              bool is_cached,
              const std::optional<Copies>& copies,
              ThreadPool& pool);

  void begin(const InitialRows& rows) override;
  embedding::RowAccess& access() override;
  std::unique_ptr<StepDriver> make_driver(StepQueue& queue,
                                          StepDriver::Options options,
                                          StageTimers& timers) override;
  std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) override;
  Size size() override;
  std::optional<embedding::CacheCounts> cache() override;

 private:
  const job::TrainConfig train_;
  Cluster& cluster_;
  ps::ShardClient& client_;
  const bool is_cached_;
  ShardRows access_;
  std::unique_ptr<SharedRows> shared_;
};

}  // namespace satrap::pipeline
