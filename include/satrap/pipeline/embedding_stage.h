#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "satrap/core/stage_timer.h"
#include "satrap/pipeline/work.h"

namespace satrap::pipeline {

/// The output of a lookup whose step has not been trained on yet: part of a checkpoint in
/// deterministic hybrid mode, because it was read from an older state than the checkpoint holds.
struct PendingLookup {
  std::int64_t step = 0;
  std::int64_t read_version = 0;
  std::vector<float> pooled;
  std::vector<float> mask;
};

/// The stage between the planner and the dense network: it runs, or asks for, every lookup and
/// every update. Works pass through it twice, in the order of their steps: planned → looked up,
/// and, with the gradient, → updated and free. This class is the hand-over; the order of lookups
/// and updates, which *is* the training mode, is the business of the classes below.
///
/// Errors of the stage's threads, and those given to fail(), are rethrown by take_looked_up and the
/// wait functions. Functions are thread-safe, but each belongs to one side.
class EmbeddingStage {
 public:
  struct Options {
    std::int64_t first_step = 1;
    std::int64_t staleness = 0;  // τ
    bool deterministic = false;
    std::int64_t planned_capacity = 4;
    std::vector<PendingLookup> restored = {};  // of steps first_step, first_step + 1, …
  };

  virtual ~EmbeddingStage() = default;

  // Planner side.
  virtual void plan(Work& work) = 0;        // which rows the batch needs
  virtual bool submit_planned(Work* work);  // blocks while too many wait; false once stopped
  virtual void close_planned();             // no more
  Work* take_free();  // blocks until a work is free for reuse; nullptr once stopped
  void add_free(Work* work);
  void fail(std::exception_ptr error);

  // Dense side.
  Work* take_looked_up(const std::atomic<bool>* stop);  // blocks; nullptr: all steps are done
  void submit_gradient(Work* work);                     // in step order

  /// Until all updates of steps <= `step`, of all ranks, are applied.
  virtual void wait_applied(std::int64_t step) = 0;
  virtual bool wait_applied_for(std::int64_t step, std::chrono::milliseconds time) = 0;

  bool all_looked_up_and_applied() const;  // the data has ended, and so has this stage

  /// Lookups done for steps after `step`; call after wait_applied(step), before the gradient of
  /// step + 1 is submitted. In deterministic mode these are exactly the steps up to step + τ (fewer
  /// only at the end of the data).
  std::vector<PendingLookup> pending_lookups(std::int64_t step);

  /// Ends all waiting, here and at the callers, without applying what is left.
  virtual void stop();

  /// histogram[s]: number of lookups that read a state s updates behind sync.
  std::vector<std::int64_t> staleness_histogram() const;

 protected:
  EmbeddingStage(Options options, StageTimers& timers);

  /// The restored lookup of the work's step instead of one of its own, if there is one.
  bool take_restored(Work& work);

  /// A lookup is done: notes its staleness and passes it on.
  void pass_on(Work* work);

  const Options options_;
  StageTimers& timers_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work*> free_, planned_, looked_up_, gradients_;
  std::int64_t last_looked_up_;  // step
  bool planned_closed_ = false;
  bool stopped_ = false;  // from outside, or by an error
  bool ended_ = false;    // everything has been looked up and applied
  std::exception_ptr error_;

 private:
  std::map<std::int64_t, PendingLookup> restored_;
  std::vector<std::int64_t> histogram_;
};

}  // namespace satrap::pipeline
