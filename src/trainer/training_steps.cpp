// The steps of a TrainingRun: enqueued, retired, and what follows from one that is not finite.

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/pipeline/stages.h"
#include "src/trainer/training_run.h"

namespace satrap::trainer {

void TrainingRun::compute(pipeline::Work& work) {
  const data::Batch& batch = work.batch;
  const pipeline::PooledBatch& inputs = work.inputs;
  dense::DenseNetwork& network = *model_.network;
  work.probabilities.resize(batch.num_examples, network.num_outputs());
  work.begin_outputs(model_.tables->access().on_device());
  if (async_dense_) async_dense_->refresh();
  const ScopedStage timer(timers_, pipeline::kStageDense);
  network.forward_backward(
      {.num_examples = batch.num_examples,
       .numeric = inputs.numeric(),
       .pooled = inputs.pooled(),
       .labels = host_matrix(std::span(batch.labels), batch.num_examples, batch.num_labels),
       .step = work.step,
       .weights = loss_weights_.of(batch, work.loss_weights),
       .loss_examples = work.shares.global_examples,
       .first_example = work.shares.first_example},
      {.probabilities = work.probabilities.view(), .grad_pooled = work.gradient()},
      async_dense_ ? dense::GradientSource::OnGradient() : ranks_.on_gradient_of(network));
}

std::optional<pipeline::StepVotes> TrainingRun::enqueue(pipeline::Work& work) {
  dense::DenseNetwork& network = *model_.network;
  pipeline::StepVotes votes;
  bool is_declined = false;  // here
  try {
    compute(work);
    if (ranks_.is_on_devices()) driver_->wait_before_update(work.step);
    votes = votes_after(work);
  } catch (const dense::StepDeclined&) {
    votes.decline = is_declined = true;
  }
  if (!async_dense_) votes = ranks_.reduce(network, votes);
  if (votes.decline) {
    if (!is_declined) network.forget_step();
    queue_->put_back(&work);  // a checkpoint may have to keep its lookup
    return std::nullopt;
  }
  step_ = work.step;
  num_queued_ += work.shares.global_examples;
  positions_ = work.shares.positions;
  ended_epochs_ = work.shares.ended_epochs;
  network.copy_flag(work.flag(), work.skip().place);
  if (work.skip().place == Place::kHost) ranks_.throw_if_failed();  // it is read at once
  queue_->submit_gradient(&work);  // the rows are updated while the dense parameters are
  if (async_dense_) {
    async_dense_->push(step_);
  } else {
    const ScopedStage timer(timers_, pipeline::kStageDense);
    network.apply(step_);
  }
  return votes;
}

/// The same on all ranks, which must all end at the same step. In the host's memory they wait for
/// each other's gradients anyway, and for those of the rows.
std::int64_t TrainingRun::max_lag() const {
  const bool is_queued = model_.tables->access().on_device() != nullptr &&
                         (cluster_.size() == 1 || ranks_.is_on_devices());
  return is_queued ? model_.network->max_in_flight() - 1 : 0;
}

void TrainingRun::retire_down_to(std::int64_t num_steps) {
  while (std::ssize(in_flight_) > num_steps) {
    pipeline::Work* const work = in_flight_.front();
    in_flight_.pop_front();
    retire(*work);
  }
}

void TrainingRun::retire(pipeline::Work& work) {
  dense::DenseResult result;
  {
    const ScopedStage timer(timers_, pipeline::kStageDense);
    result = model_.network->finish();
  }
  ranks_.throw_if_failed();
  num_queued_ -= work.shares.global_examples;
  if (result.finite) {
    // In async mode a rank does not know the others' progress before the end; it assumes its own.
    has_updated_ = true;
    reporter_->add(
        {work.probabilities.values(), work.batch.labels, work.batch.weights}, result.loss,
        async_dense_ ? work.batch.num_examples * cluster_.size() : work.shares.global_examples);
  }
  reporter_->look_at(work.shares);
  const std::int64_t step = work.step;
  if (result.finite) reporter_->look_at(step, work.batch);
  queue_->finish(&work);
  // What overflowed has lowered the loss scale; the next report says so.
  if (!result.finite && !result.overflowed) refuse(step, result.loss);
}

pipeline::StepVotes TrainingRun::votes_after(const pipeline::Work& work) {
  const std::int64_t step = work.step, ended_epochs = work.shares.ended_epochs;
  pipeline::StepVotes votes{.stop = stop_requested()};
  if (cluster_.is_chief()) {
    report_due_ = reporter_->due(step, ended_epochs, num_queued_ + work.shares.global_examples);
  }
  votes.report = report_due_ != ReportClock::Due::kNo;
  if (cluster_.is_chief() && !async_dense_) {
    votes.checkpoint = checkpoints_.is_due(step, ended_epochs);
    votes.evaluate = evaluations_.is_due(step, ended_epochs);
  }
  return votes;
}

void TrainingRun::refuse(std::int64_t step, double loss) {
  reporter_->add_nonfinite();
  log_warning("step {}: loss or gradient is not finite (loss {}); nothing was updated", step, loss);
  if (reporter_->nonfinite_steps() >= config_.train.max_nonfinite_steps) {
    throw Error(ErrorCode::kDiverged, concat("training diverged: ", reporter_->nonfinite_steps(),
                                             " steps with a loss or gradient that is not finite "
                                             "(train.max_nonfinite_steps), the last one step ",
                                             step));
  }
}

/// Throws Error(kDiverged) if this process and those of the other ranks have trained, and in vain.
void TrainingRun::require_an_update() {
  const std::int64_t steps = step_ - std::max<std::int64_t>(resumed_step_, 0);
  const bool has_any = ranks_.any(has_updated_), has_trained = ranks_.any(steps > 0);
  if (has_any || !has_trained) return;
  throw Error(ErrorCode::kDiverged,
              concat("nothing was learned: in all of ", steps,
                     " steps the loss or gradient was not finite, and none updated anything; ",
                     config_.train.precision == job::Precision::kFp16
                         ? "fp16 skips the first ones until its loss scale fits; "
                         : "",
                     "look at the learning rates, at the range of the inputs and, with model.type "
                     "torchscript, at what the module computes"));
}

}  // namespace satrap::trainer
