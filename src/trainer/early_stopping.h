#pragma once

#include <cstdint>
#include <string>

#include "satrap/checkpoint/early_stopping_state.h"
#include "satrap/job/job_config.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// Ends training once a metric of the evaluation data has stopped getting better. It decides by the
/// sequence of evaluations alone, so that ranks which see the same ones decide the same, and so
/// does a run that continues from a saved state.
class EarlyStopping {
 public:
  explicit EarlyStopping(const job::EarlyStoppingConfig& config);

  /// Continues after `state`; starts afresh if that is of another metric.
  void restore(const checkpoint::EarlyStoppingState& state);

  /// The metric is better if it differs from the best so far by more than min_delta; an undefined
  /// one is not. An evaluation of a step that is not later than the last one's changes nothing.
  void observe(std::int64_t step, const Evaluation& evaluation);

  /// The evaluation of this step is the best so far.
  bool is_best(std::int64_t step) const { return config_.is_on() && state_.best_step == step; }

  /// `patience` evaluations in a row have not been better.
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
