#pragma once

#include <cstdint>
#include <string>

#include "satrap/job/job_config.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {

/// Ends training once a metric of the evaluation data has stopped getting better. It decides by the
/// sequence of evaluations alone, so that ranks which see the same ones decide the same, and so
/// does a run that continues from a saved state.
class EarlyStopping {
 public:
  /// What it knows of the evaluations so far; travels in checkpoints.
  struct State {
    std::string metric;
    std::int64_t last_step = -1;  // of the last evaluation; -1: none yet
    std::int64_t best_step = -1;  // of the best one; -1: none of them had a value
    double best_value = 0.0;
    std::int64_t bad_evaluations = 0;  // since the last one that was better than all before
    friend bool operator==(const State&, const State&) = default;
  };

  explicit EarlyStopping(const job::EarlyStoppingConfig& config);

  /// Continues after `state`; starts afresh if that is of another metric.
  void restore(const State& state);

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
  const State& state() const { return state_; }

 private:
  const job::EarlyStoppingConfig config_;
  State state_;
};

}  // namespace satrap::trainer
