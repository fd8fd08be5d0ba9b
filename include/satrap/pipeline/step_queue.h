#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/pipeline/work.h"
#include "satrap/table/staleness_bound.h"

namespace satrap::pipeline {

/// The output of a lookup whose step has not been trained on yet: part of a checkpoint in
/// deterministic hybrid mode, because it was read from an older state than the checkpoint holds.
struct PendingLookup {
  std::int64_t step = 0;
  std::int64_t read_version = 0;
  std::vector<float> pooled;
  std::vector<float> mask;
};

/// Passes works between the planner, the driver of the embedding rows and the dense stage. Works
/// circulate in the order of their steps:
///
///   free → planned → looked up → (trained on) → gradient → retired
///
/// A work is free again once its driver has retired it and the dense stage has finished with it.
///
/// The driver (StepDriver) decides which lookup or update comes next; the queue decides nothing.
/// It holds only the works that were given to add_free().
///
/// Thread-safe; each function belongs to one side. stop() ends all waiting. fail() does too, and
/// its error is rethrown to the dense side.
class StepQueue {
 public:
  /// `first_step`: of the first work. `staleness`: the bounds τ(t).
  StepQueue(std::int64_t first_step, const table::StalenessBound& staleness);

  // Planner side.
  void add_free(Work* work);
  Work* take_free();  // blocks; nullptr once stopped

  /// Blocks while `capacity` works or more are planned and not passed on. False once stopped.
  bool wait_for_room(std::int64_t capacity);
  void add_planned(Work* work);
  void close_planned();  // no more will come

  // Driver side.
  struct State {
    std::int64_t num_planned = 0, num_looked_up = 0, num_gradients = 0;
    bool is_closed = false;  // no more works will be planned
    bool is_wanted = false;  // the dense stage waits for a lookup
  };

  /// Blocks until ready(State), called under the lock. False once stopped.
  template <class Ready>
  bool wait(Ready&& ready) {
    const MutexLock lock(mutex_);
    while (!stopped_ && !ready(state())) changed_.wait(mutex_);
    return !stopped_;
  }

  /// Both block; nullptr once stopped, or if no more will come. The first planned work stays in the
  /// queue until it is passed on.
  Work* first_planned();
  Work* take_gradient();

  void pass_on(Work* work);  // the first planned work: it is looked up
  void retire(Work* work);   // its update is done, or the rows' owner has it

  // Dense side. The wait functions rethrow errors.
  Work* take_looked_up(const std::atomic<bool>* stop);  // blocks; nullptr: all steps are done
  void put_back(Work* work);  // what take_looked_up has returned last, not trained on
  void submit_gradient(Work* work);
  void finish(Work* work);  // after submit_gradient: the dense stage does not look at it any more
  void wait_retired(std::int64_t step);

  /// Blocks until the update of `retired` and the lookup of `looked_up`, unless there is no such
  /// step, are done. Rethrows errors; returns once stopped.
  void wait_passed(std::int64_t retired, std::int64_t looked_up);
  bool wait_retired_until(std::int64_t step, std::chrono::steady_clock::time_point deadline);

  /// Whether the planner has closed and every work has been retired.
  bool has_ended() const;

  /// Lookups done for the steps (step, step + τ]. Call it when `step` has been applied, before the
  /// gradient of step + 1 is submitted. Blocks until all of them are done (which deterministic mode
  /// guarantees), or the data has ended.
  std::vector<PendingLookup> pending_lookups(std::int64_t step);

  // Any side.
  void stop();
  void fail(std::exception_ptr error);
  bool is_stopped() const;
  void wait_stopped_for(std::chrono::milliseconds time);

  /// histogram[s]: number of lookups that read a state s updates older than sync's.
  std::vector<std::int64_t> staleness_histogram() const;

 private:
  State state() const SATRAP_REQUIRES(mutex_) {
    return {std::ssize(planned_), std::ssize(looked_up_), std::ssize(gradients_), closed_,
            is_wanted_};
  }
  bool ended() const SATRAP_REQUIRES(mutex_) { return closed_ && last_retired_ == last_planned_; }
  void release(Work* work) SATRAP_REQUIRES(mutex_);
  bool retired(std::int64_t step) const SATRAP_REQUIRES(mutex_) {
    return stopped_ || last_retired_ >= step;
  }
  /// Or there is no such step.
  bool has_looked_up(std::int64_t step) const SATRAP_REQUIRES(mutex_) {
    return last_looked_up_ >= step || (closed_ && planned_.empty());
  }

  const table::StalenessBound staleness_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Work*> free_ SATRAP_GUARDED_BY(mutex_);
  std::deque<Work*> planned_ SATRAP_GUARDED_BY(mutex_);
  std::deque<Work*> looked_up_ SATRAP_GUARDED_BY(mutex_);
  std::deque<Work*> gradients_ SATRAP_GUARDED_BY(mutex_);
  // Steps.
  std::int64_t last_planned_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t last_looked_up_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t last_retired_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t last_finished_ SATRAP_GUARDED_BY(mutex_);
  bool closed_ SATRAP_GUARDED_BY(mutex_) = false;
  bool stopped_ SATRAP_GUARDED_BY(mutex_) = false;
  bool is_wanted_ SATRAP_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ SATRAP_GUARDED_BY(mutex_);
  std::vector<std::int64_t> histogram_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::pipeline
