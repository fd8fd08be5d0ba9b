#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "satrap/core/stage_timer.h"
#include "satrap/embedding/embedding_worker.h"
#include "work.h"

namespace satrap::trainer {

/// The output of a lookup whose step has not been trained on yet: part of a checkpoint in
/// deterministic hybrid mode, because it was read from an older state than the checkpoint holds.
struct PendingLookup {
  std::int64_t step = 0;
  std::int64_t read_version = 0;
  std::vector<float> pooled;
  std::vector<float> mask;
};

/// The thread that owns the embedding tables' contents: it runs every lookup and every update, and
/// decides their order. That order *is* the training mode. With bound τ (0: sync):
///
///  - the lookup of step t starts once all updates of steps <= t-1-τ have been applied: the bound
///  is
///    enforced here, where rows are read, whatever the speed of the other stages;
///  - deterministic: no update later than t-1-τ is applied before it, so it reads exactly
///  E_{t-1-τ};
///    otherwise updates are applied as they arrive, unless the dense stage has nothing to do;
///  - updates are applied in the order of their steps.
///
/// A lookup or an update runs on this thread and the pool; never two of them at once. Steps come in
/// order from `submit_planned` and from `submit_gradient`. Errors of this thread, and those given
/// to fail(), are rethrown by take_looked_up and the wait functions. Functions are thread-safe.
class EmbeddingStage {
 public:
  struct Options {
    std::int64_t first_step = 1;
    std::int64_t staleness = 0;  // τ
    bool deterministic = false;
    std::int64_t planned_capacity = 4;
    std::vector<PendingLookup> restored;  // of steps first_step, first_step + 1, …
  };

  EmbeddingStage(embedding::EmbeddingWorker& worker, Options options, StageTimers& timers);
  ~EmbeddingStage();  // stops and joins

  /// Largest number of works that are in this stage's hands or the dense stage's at any time.
  static std::int64_t max_in_flight(std::int64_t planned_capacity, std::int64_t staleness) {
    return planned_capacity + staleness + 2;
  }

  // Planner side.
  bool submit_planned(Work* work);  // blocks while `planned_capacity` wait; false once stopped
  void close_planned();             // no more
  Work* take_free();                // blocks until a work is free for reuse; nullptr once stopped
  void add_free(Work* work);
  void fail(std::exception_ptr error);

  // Dense side.
  Work* take_looked_up(const std::atomic<bool>* stop);  // blocks; nullptr: all steps are done
  void submit_gradient(Work* work);                     // in step order
  void wait_applied(std::int64_t step);  // until all updates of steps <= `step` are applied
  bool wait_applied_for(std::int64_t step, std::chrono::milliseconds time);  // false: not yet

  bool all_looked_up_and_applied() const;  // the data has ended, and so has this stage

  /// Lookups done for steps after `step`; call after wait_applied(step), before the gradient of
  /// step + 1 is submitted. In deterministic mode these are exactly the steps up to step + τ (fewer
  /// only at the end of the data).
  std::vector<PendingLookup> pending_lookups(std::int64_t step);

  /// Ends all waiting, here and at the callers, without applying what is left.
  void stop();

  /// histogram[s]: number of lookups that read a state s updates behind sync.
  std::vector<std::int64_t> staleness_histogram() const;

 private:
  enum class Action { kWait, kLookUp, kUpdate, kEnd };
  Action next_action() const;  // under mutex_
  void run();
  void look_up(Work* work);
  void update(Work* work);

  embedding::EmbeddingWorker& worker_;
  const Options options_;
  StageTimers& timers_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work*> free_, planned_, looked_up_, gradients_;
  std::map<std::int64_t, PendingLookup> restored_;
  std::int64_t last_looked_up_;  // step
  std::int64_t last_applied_;    // step
  bool planned_closed_ = false;
  bool stopped_ = false;  // from outside, or by an error
  bool ended_ = false;    // everything has been looked up and applied
  std::exception_ptr error_;
  std::vector<std::int64_t> histogram_;
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace satrap::trainer
