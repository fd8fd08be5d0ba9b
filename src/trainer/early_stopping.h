#pragma once

#include <cstdint>
#include <string>

#include "satrap/checkpoint/early_stopping_state.h"
#include "satrap/job/job_config.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// Ends training once a metric of the evaluation data stops improving. The decision depends only on
/// the sequence of evaluations, so that ranks with the same evaluations decide the same, and so
/// does a run that continues from a saved state.
class EarlyStopping {
 public:
  explicit EarlyStopping(const job::EarlyStoppingConfig& config);

  /// Continues from `state`; starts afresh if it has another metric.
  void restore(const checkpoint::EarlyStoppingState& state);

  /// The metric is better if it improves on the best so far by more than min_delta; an undefined
  /// one is not. An evaluation of a step that is not later than the last one changes nothing.
  void observe(std::int64_t step, const Evaluation& evaluation);

  /// Whether the evaluation of this step is the best so far.
  bool is_best(std::int64_t step) const { return config_.is_on() && state_.best_step == step; }

  /// Whether `patience` consecutive evaluations have not been better.
  bool should_stop() const { return config_.is_on() && state_.bad_evaluations >= config_.patience; }

  /// Why it stops, for the log.
  std::string describe() const;

  bool is_on() const { return config_.is_on(); }
  const checkpoint::EarlyStoppingState& state() const { return state_; }

 private:
  const job::EarlyStoppingConfig config_;
  checkpoint::EarlyStoppingState state_;
};

}  // namespace satrap::trainer
