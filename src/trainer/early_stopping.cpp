#include "src/trainer/early_stopping.h"

#include <cmath>

#include <fmt/format.h>

namespace satrap::trainer {
namespace {

double metric_of(const Evaluation& evaluation, job::StoppingMetric metric) {
  switch (metric) {
    case job::StoppingMetric::kAuc:
      return evaluation.auc;
    case job::StoppingMetric::kGauc:
      return evaluation.grouped.value_or(GroupedAuc{}).auc;
    case job::StoppingMetric::kLogloss:
      return evaluation.logloss;
    case job::StoppingMetric::kNe:
      return evaluation.ne;
    case job::StoppingMetric::kRmse:
      return evaluation.rmse;
    case job::StoppingMetric::kMae:
      return evaluation.mae;
    case job::StoppingMetric::kAccuracy:
      return evaluation.accuracy;
  }
  return evaluation.auc;  // not reached
}

}  // namespace

EarlyStopping::EarlyStopping(const job::EarlyStoppingConfig& config) : config_(config) {
  state_.metric = word_of(config.metric, job::kStoppingMetrics);
}

void EarlyStopping::restore(const checkpoint::EarlyStoppingState& state) {
  if (state.metric == state_.metric) state_ = state;
}

void EarlyStopping::observe(std::int64_t step, const Evaluation& evaluation) {
  if (!config_.is_on() || step <= state_.last_step) return;
  state_.last_step = step;
  const double value = metric_of(evaluation, config_.metric);
  const double gain =
      job::should_rise(config_.metric) ? value - state_.best_value : state_.best_value - value;
  const bool is_first = state_.best_step < 0 && std::isfinite(value);
  const bool is_better = is_first || gain > config_.min_delta;  // false for NaN
  if (!is_better) {
    ++state_.bad_evaluations;
    return;
  }
  state_.best_step = step;
  state_.best_value = value;
  state_.bad_evaluations = 0;
}

std::string EarlyStopping::describe() const {
  const std::string best =
      state_.best_step < 0 ? "undefined"
                           : fmt::format("not better than {:.5f} of step {} by more than {}",
                                         state_.best_value, state_.best_step, config_.min_delta);
  return fmt::format("{} was {} in {} evaluations", state_.metric, best, state_.bad_evaluations);
}

}  // namespace satrap::trainer
