#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/checkpoint/checkpoint_writer.h"
#include "satrap/checkpoint/continuation.h"
#include "satrap/loader/loaders.h"
#include "satrap/pipeline/async_dense.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/global_batches.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/planner_thread.h"
#include "satrap/pipeline/rank_group.h"
#include "src/trainer/checkpoints.h"
#include "src/trainer/evaluations.h"
#include "src/trainer/job_start.h"
#include "src/trainer/loss_weights.h"
#include "src/trainer/reporter.h"
#include "src/trainer/run_directory.h"

namespace satrap::trainer {

/// The memory of the batches of a run. Others may own it too, and keep it beyond the run; what
/// refers to the tables does not outlive this object.
struct Works {
  ~Works() {
    for (const auto& work : *all) work->rows.reset();
  }
  std::shared_ptr<std::vector<std::unique_ptr<pipeline::Work>>> all =
      std::make_shared<std::vector<std::unique_ptr<pipeline::Work>>>();
};

/// One call of train(): owns the model and the stages, and runs the dense stage on the calling
/// thread. enqueue() and retire() process a batch; run() does what may happen between two steps.
/// Each rank runs one, in step with the others; the chief's writes the run directory.
class TrainingRun {
 public:
  TrainingRun(const job::JobConfig& config, const TrainOptions& options);
  TrainOutcome run();

  /// Whether it has taken a step, so that there is something to save.
  bool has_trained() const { return step_ > std::max<std::int64_t>(0, resumed_step_); }

 private:
  void restore();
  void start_anew();
  void open_pipeline();
  void begin_directory();
  void start_planner();
  void begin_dense(const pipeline::Work* first);
  void tell_start() const;
  void start_from_average(const data::Batch& batch);

  /// One step of the dense network, from a finished lookup to a submitted gradient and newer
  /// parameters. On a device it only queues the work. Nothing if who computes the network, here or
  /// on another rank, declines the step, which then belongs to no run.
  std::optional<pipeline::StepVotes> enqueue(pipeline::Work& work);
  void compute(pipeline::Work& work);
  pipeline::StepVotes votes_after(const pipeline::Work& work);

  /// Once the step is done: counts it and its metrics, and gives the work back.
  void retire(pipeline::Work& work);
  void retire_down_to(std::int64_t num_steps);  // the oldest, until so many are left
  std::int64_t max_lag() const;                 // steps that may be enqueued and not retired
  void refuse(std::int64_t step, double loss);

  /// Waits until all of steps <= step_ is applied and nothing later: the model is W_step, E_step.
  void settle() { driver_->wait_applied(step_); }

  /// As settle, at the end of the run: does not wait for input that will not arrive.
  void settle_within_grace();

  bool evaluate();  // false: a signal, here or on another rank, cut it short
  void start_checkpoint(bool is_needed);
  void write_part(const std::string& directory,
                  const std::vector<pipeline::PendingLookup>& pending) const;
  std::unique_ptr<checkpoint::CheckpointContent> checkpoint_content(
      std::vector<pipeline::PendingLookup> pending);
  std::optional<data::TopicPosition> topic_position() const;
  void commit_topic(const data::TopicPosition& position) const;
  void finish(bool finished, bool has_failed);
  void end_async();
  void require_an_update();
  bool stop_requested() const { return options_.stop != nullptr && options_.stop->load(); }

  const job::JobConfig config_;
  const TrainOptions& options_;
  pipeline::Cluster cluster_;
  std::optional<RunDirectory> directory_;  // of the chief
  ThreadPool pool_;
  const JobStart start_;
  const data::Schema& schema_;  // of start_.data
  const data::FittedTransforms transforms_;
  const LossWeights loss_weights_;
  pipeline::Model model_;
  Checkpoints checkpoints_;  // ends after ranks_: others must not wait for what it writes
  StageTimers timers_;
  pipeline::RankGroup ranks_;
  Evaluations evaluations_;

  std::int64_t step_ = 0;                      // the last one enqueued
  std::int64_t num_queued_ = 0;                // examples of all ranks in the steps not retired
  std::int64_t resumed_step_ = -1;             // -1: not resumed
  std::vector<data::DataPosition> positions_;  // [num_ranks] after it
  std::int64_t ended_epochs_ = 0;              // complete with it, if it ends one; else 0
  bool has_updated_ = false;                   // a step of this process was finite
  data::DataPosition start_position_;
  std::vector<std::string> warm_tables_;  // that were taken over
  std::int64_t restored_examples_ = 0, restored_nonfinite_steps_ = 0;
  std::vector<pipeline::PendingLookup> pending_;
  ReportClock::Due report_due_ = ReportClock::Due::kNo;  // after the last step; the chief's

  // Created last and destroyed first: threads that use the members above.
  Works works_;
  std::deque<pipeline::Work*> in_flight_;     // enqueued, not retired
  std::unique_ptr<loader::Loaders> loaders_;  // that read for source_; null: this process reads
  std::unique_ptr<data::BatchSource> source_;
  std::unique_ptr<pipeline::GlobalBatches> batches_;
  std::unique_ptr<pipeline::StepQueue> queue_;
  std::unique_ptr<pipeline::StepDriver> driver_;
  std::unique_ptr<pipeline::AsyncDense> async_dense_;  // in async mode
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<pipeline::PlannerThread> planner_;
};

}  // namespace satrap::trainer
