#pragma once

#include <memory>

#include "satrap/core/thread_pool.h"
#include "satrap/embedding/remote_embedding_worker.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/embedding_store.h"
#include "satrap/ps/shard_client.h"

namespace satrap::pipeline {

/// Tables on the parameter-server shards of a cluster, which all its ranks share.
class ShardsStore final : public EmbeddingStore {
 public:
  ShardsStore(const job::EmbeddingSpecs& specs,
              const job::JobConfig& job,
              Cluster& cluster,
              ThreadPool& pool);

  void begin(const InitialRows& rows) override;
  std::unique_ptr<EmbeddingStage> make_stage(EmbeddingStage::Options options,
                                             StageTimers& timers) override;
  std::unique_ptr<RowReader> make_reader() override;
  std::unique_ptr<RowsSnapshot> take_snapshot(std::int64_t step) override;
  Size size() override;

  ps::ShardClient& client() { return client_; }

 private:
  const job::EmbeddingSpecs specs_;
  const job::TrainConfig train_;
  Cluster& cluster_;
  ThreadPool& pool_;
  embedding::RemoteEmbeddingWorker worker_;
  ps::ShardClient client_;
};

}  // namespace satrap::pipeline
