#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/table/step_clock.h"
#include "src/ps/row_work.h"
#include "src/ps/running_job.h"

namespace satrap::ps {

/// A thread of a shard ("ps-work-N") and the partitions that only it works on. It handles requests
/// in the order of arrival, except that pulls and updates wait until its clock allows them. The
/// number of steps that ranks may have open bounds its queue.
class ShardWorker {
 public:
  /// `before_request` may be empty.
  ShardWorker(std::int64_t number, std::function<void()> before_request);
  ~ShardWorker();  // handles all requests that have arrived, then joins
  ShardWorker(const ShardWorker&) = delete;
  ShardWorker& operator=(const ShardWorker&) = delete;

  // ---- from any thread
  void pull(OpenStep& step);
  void push(OpenStep& step);
  void end_pulls(std::int64_t rank, std::int64_t step);
  void work_on(std::shared_ptr<RowRequest> request);
  void dense(std::shared_ptr<DenseRequest> request);
  void run(std::function<void(ShardWorker&)> action);
  void wake();  // to see that the job has failed

  // ---- on its own thread, from an action
  /// Works for `job` from now on; nullptr: for none. Ends requests that wait for the previous job,
  /// which must have failed.
  void set_job(RunningJob* job);

  /// Rows that are updated from now on get a last_step above that of `mark`.
  void raise_mark(std::int64_t mark) { least_mark_ = std::min(mark + 1, kMaxStep); }
  std::int64_t highest_mark() const { return highest_mark_; }
  std::int64_t applied() const { return clock_ ? clock_->applied() : 0; }

 private:
  enum class Kind { kPull, kPush, kEndPulls, kRows, kDense, kAction, kWake };
  struct Item {
    Kind kind = Kind::kWake;
    OpenStep* step = nullptr;
    std::int64_t rank = 0, number = 0;
    std::shared_ptr<RowRequest> request = nullptr;
    std::shared_ptr<DenseRequest> dense = nullptr;
    std::function<void(ShardWorker&)> action = nullptr;
  };

  void add(Item item);
  void work();
  void take(Item& item);
  void advance();
  void end_what_waits();
  void read(OpenStep& step);
  std::int64_t first_partition(std::int64_t worker) const;
  void work_on_rows(RowRequest& request);
  void work_on_dense(DenseRequest& request);
  void apply_next();
  void apply(std::span<OpenStep* const> steps);
  OpenStep*& pushed(std::int64_t rank, std::int64_t step);

  const std::int64_t number_;
  const std::function<void()> before_request_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Item> inbox_ SATRAP_GUARDED_BY(mutex_);
  bool stop_ SATRAP_GUARDED_BY(mutex_) = false;

  // Used by its own thread only.
  RunningJob* job_ = nullptr;
  std::optional<table::StepClock> clock_;
  std::vector<OpenStep*> waiting_;  // pulls, in the order of arrival
  std::vector<OpenStep*> pushed_;   // [num_ranks, open steps], by step modulo
  std::vector<OpenStep*> due_;
  std::vector<RowGradients> gradients_;
  std::int64_t least_mark_ = 0, highest_mark_ = 0;
  RowWork rows_;

  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace satrap::ps
