#include "src/trainer/evaluations.h"

#include "satrap/core/log.h"
#include "src/trainer/evaluator.h"

namespace satrap::trainer {

Evaluations::Evaluations(const Sources& sources)
    : sources_(sources),
      early_stopping_(sources.config.train.early_stopping),
      clock_(job::Interval::parse(sources.config.train.eval_every, "train.eval_every")) {}

bool Evaluations::is_owed(std::int64_t step, std::int64_t ended_epochs) {
  if (!early_stopping_.is_on() || step <= 0) return false;
  return sources_.ranks.any(sources_.cluster.is_chief() && is_due(step, ended_epochs) &&
                            early_stopping_.state().last_step != step);
}

bool Evaluations::run(std::int64_t step, Reporter& reporter) {
  // Running statistics are of each rank's own batches.
  sources_.ranks.copy_from_chief(*sources_.model.network);
  const std::optional<Evaluation> evaluation = evaluate_model(
      sources_.data, sources_.config, sources_.transforms, sources_.model, sources_.cluster,
      sources_.ranks, sources_.options.stop, sources_.options.live);
  if (!evaluation) return false;  // covers a part of the data
  reporter.report_evaluation(step, *evaluation);
  step_ = step;
  early_stopping_.observe(step, *evaluation);
  if (sources_.cluster.is_chief() && early_stopping_.should_stop()) {
    log_info("early stopping at step {}: {}", step, early_stopping_.describe());
  }
  return true;
}

std::optional<checkpoint::EarlyStoppingState> Evaluations::state() const {
  return early_stopping_.is_on() ? std::optional(early_stopping_.state()) : std::nullopt;
}

}  // namespace satrap::trainer
