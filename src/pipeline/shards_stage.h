#pragma once

#include <cstdint>
#include <deque>
#include <thread>

#include "satrap/embedding/remote_embedding_worker.h"
#include "satrap/pipeline/embedding_stage.h"
#include "satrap/ps/shard_client.h"

namespace satrap::pipeline {

/// Over tables on parameter-server shards, which enforce the order of lookups and updates: a step's
/// rows are asked for as soon as it is planned, and the shards answer when the mode lets them; its
/// gradients are pushed in the background. Three threads: "embedding" waits for rows and pools
/// them, "push" sums gradients by key and sends them, "pushed" waits until the shards have them.
class ShardsStage final : public EmbeddingStage {
 public:
  ShardsStage(embedding::RemoteEmbeddingWorker& worker,
              ps::ShardClient& client,
              bool is_async,
              Options options,
              StageTimers& timers);
  ~ShardsStage() override;  // stops, closes the client and joins

  void plan(Work& work) override;
  bool submit_planned(Work* work) override;
  void close_planned() override;
  void wait_applied(std::int64_t step) override;
  bool wait_applied_for(std::int64_t step, std::chrono::milliseconds time) override;
  void stop() override;

 private:
  void run(void (ShardsStage::*loop)());
  void look_up_planned();
  void look_up(Work* work);
  void push_gradients();
  void push(Work* work);
  void wait_pushed();
  bool all_pushed() const;  // under mutex_

  embedding::RemoteEmbeddingWorker& worker_;
  ps::ShardClient& client_;
  const bool is_async_;
  std::int64_t last_planned_;  // step
  std::int64_t last_sent_;     // step, of the push thread
  std::int64_t last_pushed_;   // step that all shards have taken
  std::deque<Work*> sent_;     // not taken yet
  std::thread lookups_, pushes_, answers_;
};

}  // namespace satrap::pipeline
