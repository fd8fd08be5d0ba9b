#pragma once

#include <cstdint>
#include <thread>

#include "satrap/embedding/embedding_worker.h"
#include "satrap/pipeline/embedding_stage.h"

namespace satrap::pipeline {

/// Over tables in this process: one thread owns their contents, runs every lookup and every update,
/// never two of them at once, and decides their order. With bound τ (0: sync):
///
///  - the lookup of step t starts once all updates of steps <= t-1-τ have been applied: the bound
///  is
///    enforced here, where rows are read, whatever the speed of the other stages;
///  - deterministic: no update later than t-1-τ is applied before it, so it reads exactly
///  E_{t-1-τ};
///    otherwise updates are applied as they arrive, unless the dense stage has nothing to do;
///  - updates are applied in the order of their steps.
class TablesStage final : public EmbeddingStage {
 public:
  TablesStage(embedding::EmbeddingWorker& worker, Options options, StageTimers& timers);
  ~TablesStage() override;  // stops and joins

  void plan(Work& work) override;
  void wait_applied(std::int64_t step) override;
  bool wait_applied_for(std::int64_t step, std::chrono::milliseconds time) override;

 private:
  enum class Action { kWait, kLookUp, kUpdate, kEnd };
  Action next_action() const;  // under mutex_
  void run();
  void look_up(Work* work);
  void update(Work* work);

  embedding::EmbeddingWorker& worker_;
  std::int64_t last_applied_;  // step
  std::thread thread_;         // last: starts when everything above exists
};

}  // namespace satrap::pipeline
