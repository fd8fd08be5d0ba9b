#pragma once

#include <memory>
#include <string>

#include "checkpoint_reader.h"
#include "checkpoint_writer.h"
#include "evaluator.h"
#include "model.h"
#include "planner.h"
#include "reporter.h"
#include "run_directory.h"

namespace satrap::trainer {

/// One call of train(): owns the model and the stages, and runs the dense stage on the calling
/// thread. The walk of a batch is in step(); what may happen between two steps is in run().
class TrainingRun {
 public:
  TrainingRun(const JobConfig& config, const TrainOptions& options);
  TrainOutcome run();

 private:
  void restore(const std::string& checkpoint);
  void open_pipeline();
  void begin_directory();
  void start_planner();

  /// One step of the dense network, from a finished lookup to a submitted gradient.
  void step(Work& work);

  /// Everything of steps <= step_ is applied and nothing later is: the model is W_step, E_step.
  void settle() { stage_->wait_applied(step_); }

  /// As settle, at the end of the run: does not wait for input that is not coming.
  void settle_within_grace();

  void evaluate();
  void start_checkpoint();
  bool stop_requested() const { return options_.stop != nullptr && options_.stop->load(); }

  const JobConfig& config_;
  const TrainOptions& options_;
  const std::string checkpoint_to_resume_;
  RunDirectory directory_;
  ThreadPool pool_;
  const data::Schema schema_;
  const data::FittedTransforms transforms_;
  Model model_;
  std::unique_ptr<CheckpointWriter> checkpoints_;
  StageTimers timers_;

  std::int64_t step_ = 0;           // the last one finished
  std::int64_t resumed_step_ = -1;  // -1: not resumed
  std::int64_t evaluated_step_ = -1;
  std::int64_t checkpointed_step_ = -1;
  data::DataPosition position_;  // after it
  std::int64_t restored_examples_ = 0, restored_nonfinite_steps_ = 0;
  std::vector<PendingLookup> pending_;

  // Opened last and closed first: threads that use the above.
  std::vector<std::unique_ptr<Work>> works_;
  std::unique_ptr<data::BatchSource> source_;
  std::unique_ptr<EmbeddingStage> stage_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<Planner> planner_;
};

}  // namespace satrap::trainer
