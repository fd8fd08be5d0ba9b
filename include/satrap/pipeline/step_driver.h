#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "satrap/core/stage_timer.h"
#include "satrap/embedding/planner.h"
#include "satrap/embedding/row_access.h"
#include "satrap/pipeline/step_queue.h"
#include "satrap/table/staleness_bound.h"

namespace satrap::pipeline {

/// Runs the lookups and updates of the works in a StepQueue over a RowAccess, each with the threads
/// it needs: SerialDriver decides their order itself, ShardDriver leaves that to the shards.
class StepDriver {
 public:
  struct Options {
    std::int64_t first_step = 1;
    table::StalenessBound staleness = 0;  // τ(t)
    bool deterministic = false;
    bool is_async = false;  // shards only: no bound
    std::int64_t planned_capacity = 4;
    std::vector<PendingLookup> restored = {};  // of steps first_step, first_step + 1, …
  };

  virtual ~StepDriver() = default;
  StepDriver(const StepDriver&) = delete;
  StepDriver& operator=(const StepDriver&) = delete;

  // Planner thread.
  std::int64_t look_ahead() const { return access_.look_ahead(); }
  void look_at(const data::Batch& batch, std::int64_t step);
  void make_plan(Work& work);
  virtual bool submit(Work* work) = 0;  // blocks while too many wait; false once stopped
  virtual void close() = 0;             // no more will come

  // Dense thread. Rethrow errors.
  /// Blocks until all updates of steps <= `step`, of all ranks, are applied.
  virtual void wait_applied(std::int64_t step) = 0;
  virtual bool wait_applied_for(std::int64_t step, std::chrono::milliseconds time) = 0;

  /// Blocks until the update of `step`, whose gradient has not been submitted, is the next thing
  /// that this rank exchanges with others by a DeviceCommunicator: between there is room for the
  /// sum of the dense gradients, at the same place on all ranks.
  virtual void wait_before_update(std::int64_t /*step*/) {}

  /// Ends all waiting, here and at the callers, without applying what is left. Any thread.
  virtual void stop() = 0;

 protected:
  /// `queue`, `access` and `timers` outlive it.
  StepDriver(StepQueue& queue, embedding::RowAccess& access, Options options, StageTimers& timers);

  using Clock = std::chrono::steady_clock;
  struct Lookup {
    std::int64_t step, read_version;
  };

  /// Waits for the rows of the first planned work, pools them and passes the work on. A lookup
  /// that was restored is taken instead. `version`: what was read, unless the rows tell.
  /// Afterwards the work is the dense stage's.
  Lookup look_up(Work* work, std::int64_t version);

  void update(Work* work);

  const Options options_;
  StepQueue& queue_;
  embedding::RowAccess& access_;
  StageTimers& timers_;

 private:
  void take_restored(Work& work);

  embedding::Planner planner_;
  std::map<std::int64_t, PendingLookup> restored_;  // by step
};

}  // namespace satrap::pipeline
