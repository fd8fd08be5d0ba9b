#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "satrap/data/batch.h"
#include "satrap/pipeline/global_batches.h"
#include "satrap/pipeline/step_driver.h"
#include "satrap/pipeline/work.h"

namespace satrap::pipeline {

/// The batches of the next steps, read as far ahead as the access to the rows wants to see them on
/// every rank, and shown to it. All ranks read, and look at, the same batches in the same steps, as
/// both may wait for the others. The planner's thread alone.
class BatchesAhead {
 public:
  /// `first_step` and `last_step` (0: with the data) as those of PlannerThread. Both outlive it.
  BatchesAhead(GlobalBatches& batches,
               StepDriver& driver,
               std::int64_t first_step,
               std::int64_t last_step);

  /// Gives `work` the batch of the next step. False at the end, which is also where a batch cannot
  /// be read (GlobalBatches::error). Reads at most two batches: while the window grows, by one
  /// batch per step, a reader that is the bottleneck halves the rate.
  bool next(Work& work);

 private:
  struct Batch {
    data::Batch batch;
    RankShares shares;
  };
  static constexpr int kReadsPerStep = 2;
  void read();
  bool may_read() const;

  GlobalBatches& batches_;
  StepDriver& driver_;
  std::int64_t next_read_;  // step
  const std::int64_t last_step_;
  std::deque<Batch> ahead_;  // oldest first
  std::vector<Batch> free_;  // their memory is used again
  bool has_ended_ = false;
};

}  // namespace satrap::pipeline
