#pragma once

#include <cstdint>
#include <optional>

#include "satrap/checkpoint/early_stopping_state.h"
#include "satrap/data/dataset.h"
#include "satrap/data/transforms.h"
#include "satrap/job/interval.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/rank_group.h"
#include "satrap/trainer/trainer.h"
#include "src/trainer/early_stopping.h"
#include "src/trainer/reporter.h"

namespace satrap::trainer {

/// The evaluations of a run: when one is due, which step has one, and what follows for early
/// stopping. All ranks call the same functions in the same order; one thread.
class Evaluations {
 public:
  struct Sources {  // all outlive it
    const data::Dataset& data;
    const job::JobConfig& config;
    const data::FittedTransforms& transforms;
    pipeline::Model& model;
    const pipeline::Cluster& cluster;
    pipeline::RankGroup& ranks;
    const TrainOptions& options;
  };
  explicit Evaluations(const Sources& sources);

  /// Early stopping continues from this state of a checkpoint.
  void restore(const checkpoint::EarlyStoppingState& state) { early_stopping_.restore(state); }

  /// Whether one is due after `step`, once per step; the chief decides for all.
  bool is_due(std::int64_t step, std::int64_t ended_epochs) {
    return clock_.due(step, ended_epochs);
  }

  /// Whether a signal cut short the evaluation due after `step`, from which the run continues.
  /// Early stopping needs its result, to decide as it would have undisturbed.
  bool is_owed(std::int64_t step, std::int64_t ended_epochs);

  /// Whether this process has evaluated the model after `step`.
  bool has(std::int64_t step) const { return step_ == step; }

  /// Evaluates the model, which is that after `step`. Returns false if a signal, here or on another
  /// rank, cut it short.
  bool run(std::int64_t step, Reporter& reporter);

  const EarlyStopping& early_stopping() const { return early_stopping_; }
  /// For a checkpoint; nothing without early stopping.
  std::optional<checkpoint::EarlyStoppingState> state() const;

 private:
  const Sources sources_;
  EarlyStopping early_stopping_;
  job::IntervalClock clock_;
  std::int64_t step_ = -1;  // of the last one
};

}  // namespace satrap::trainer
