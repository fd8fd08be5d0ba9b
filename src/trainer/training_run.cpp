#include "training_run.h"

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/data/loader.h"
#include "stages.h"

namespace satrap::trainer {
namespace {

std::string checkpoint_to_resume(const JobConfig& config, const TrainOptions& options) {
  if (!options.resume_from.empty()) {
    const std::string found = find_checkpoint(options.resume_from);
    if (found.empty()) {
      throw Error(ErrorCode::kIo, concat("no checkpoint in '", options.resume_from, "'"));
    }
    return found;
  }
  return options.resume ? find_checkpoint(config.run_dir) : "";
}

RunDirectory::Mode mode_of(const TrainOptions& options) {
  if (options.resume || !options.resume_from.empty()) return RunDirectory::Mode::kResume;
  return options.overwrite ? RunDirectory::Mode::kOverwrite : RunDirectory::Mode::kFresh;
}

std::int64_t num_threads(const TrainConfig& config) {
  return config.threads > 0 ? config.threads : num_cpus();
}

data::FittedTransforms prepare_transforms(const JobConfig& config,
                                          const data::Schema& schema,
                                          const std::string& checkpoint) {
  if (!checkpoint.empty()) {
    return data::FittedTransforms::from_json(read_transforms(checkpoint), schema);
  }
  return data::fit_transforms(config.data, schema, config.seed);
}

}  // namespace

TrainingRun::TrainingRun(const JobConfig& config, const TrainOptions& options)
    : config_(config),
      options_(options),
      checkpoint_to_resume_(checkpoint_to_resume(config, options)),
      directory_(config, mode_of(options)),
      pool_(num_threads(config.train)),
      schema_(data::resolve_schema(config.data)),
      transforms_(prepare_transforms(config, schema_, checkpoint_to_resume_)),
      model_(config, schema_, pool_),
      timers_(kNumStages) {
  if (!checkpoint_to_resume_.empty()) restore(checkpoint_to_resume_);
}

void TrainingRun::restore(const std::string& checkpoint) {
  RestoredState state = load_checkpoint(checkpoint, model_);
  step_ = resumed_step_ = checkpointed_step_ = state.manifest.step;
  position_ = state.manifest.position;
  restored_examples_ = state.manifest.examples;
  restored_nonfinite_steps_ = state.manifest.nonfinite_steps;
  if (config_.train.deterministic) pending_ = std::move(state.pending);
  log_info("resumed from {} (step {}, {} examples)", checkpoint, step_, restored_examples_);
}

void TrainingRun::open_pipeline() {
  data::ReadOptions read;
  read.seed = config_.seed;
  read.batch_size = config_.data.batch_size;
  read.epochs = config_.train.epochs;
  read.start = position_;
  source_ = data::open_batches(config_.data, schema_, transforms_, data::Role::kTrain, read);

  const std::int64_t staleness = config_.train.staleness_bound();
  stage_ = std::make_unique<EmbeddingStage>(
      *model_.worker,
      EmbeddingStage::Options{.first_step = step_ + 1,
                              .staleness = staleness,
                              .deterministic = config_.train.deterministic,
                              .planned_capacity = config_.train.prefetch_batches,
                              .restored = std::move(pending_)},
      timers_);
  const std::int64_t num_works =
      EmbeddingStage::max_in_flight(config_.train.prefetch_batches, staleness);
  for (std::int64_t i = 0; i < num_works; ++i) {
    stage_->add_free(works_.emplace_back(std::make_unique<Work>()).get());
  }
  reporter_ = std::make_unique<Reporter>(
      Reporter::Sources{config_, model_, *source_, *stage_, timers_, directory_}, options_,
      restored_examples_);
  reporter_->restore_nonfinite_steps(restored_nonfinite_steps_);
}

void TrainingRun::start_planner() {
  planner_ = std::make_unique<Planner>(*source_, *model_.worker, *stage_, timers_, step_ + 1,
                                       config_.train.max_steps);
}

void TrainingRun::begin_directory() {
  directory_.begin(step_);
  checkpoints_ =
      std::make_unique<CheckpointWriter>(directory_.checkpoints(), config_.checkpoint.keep);
  checkpoints_->set_newer_aside(step_);
}

TrainOutcome TrainingRun::run() {
  open_pipeline();
  begin_directory();
  start_planner();
  IntervalClock report_clock(Interval::parse(config_.train.report_every, "train.report_every"));
  IntervalClock eval_clock(Interval::parse(config_.train.eval_every, "train.eval_every"));
  IntervalClock checkpoint_clock(Interval::parse(config_.checkpoint.every, "checkpoint.every"));

  const auto next_work = [&] {
    const ScopedStage timer(timers_, kStageWait);
    return stage_->take_looked_up(options_.stop);
  };
  while (Work* work = next_work()) {
    step(*work);
    if (report_clock.due(step_)) reporter_->report(step_);
    if (eval_clock.due(step_)) evaluate();
    if (checkpoint_clock.due(step_)) start_checkpoint();
    if (stop_requested()) break;
  }
  bool finished = stage_->all_looked_up_and_applied();
  settle_within_grace();
  reporter_->end_training();
  reporter_->report(step_);
  if (finished && config_.data.has_eval()) evaluate();
  finished = finished && !stop_requested();  // it may have cut the evaluation short
  start_checkpoint();
  checkpoints_->wait();
  if (evaluated_step_ == step_) checkpoints_->update_metrics(step_, reporter_->metrics());
  reporter_->write_summary(step_, finished, resumed_step_ >= 0);
  planner_.reset();
  return {finished, directory_.path("summary.json"), find_checkpoint(directory_.checkpoints())};
}

void TrainingRun::settle_within_grace() {
  constexpr std::chrono::seconds kGrace(2);
  if (stage_->wait_applied_for(step_, kGrace)) return;
  // Deterministic hybrid looks up steps to come before it applies the last updates, and their input
  // is not coming.
  log_warning(
      "stopped while waiting for input: the lookups of the next steps are not made, so that "
      "a resumed run may differ from an undisturbed one");
  source_->close();
  settle();
}

void TrainingRun::step(Work& work) {
  const std::span<const float> numeric = join_numeric(work.batch, work.mask, work.numeric);
  work.probabilities.resize(work.batch.labels.size());
  work.grad_pooled.resize(work.pooled.size());
  dense::DenseResult result;
  {
    const ScopedStage timer(timers_, kStageDense);
    result = model_.network->forward_backward({.num_rows = work.batch.num_rows,
                                               .numeric = numeric,
                                               .pooled = work.pooled,
                                               .labels = work.batch.labels,
                                               .step = work.step},
                                              work.probabilities, work.grad_pooled);
  }
  step_ = work.step;
  position_ = work.position;
  work.skip_update = !result.finite;
  if (result.finite) reporter_->add(work.probabilities, work.batch.labels);
  stage_->submit_gradient(&work);  // the embedding update runs beside the dense one
  if (result.finite) {
    const ScopedStage timer(timers_, kStageDense);
    model_.network->apply(step_);
    return;
  }
  reporter_->add_nonfinite();
  log_warning("step {}: loss or gradient is not finite (loss {}); nothing was updated", step_,
              result.loss);
  if (reporter_->nonfinite_steps() >= config_.train.max_nonfinite_steps) {
    throw Error(ErrorCode::kDiverged, concat("training diverged: ", reporter_->nonfinite_steps(),
                                             " steps with a loss or gradient that is not finite "
                                             "(train.max_nonfinite_steps), the last one step ",
                                             step_));
  }
}

void TrainingRun::evaluate() {
  if (evaluated_step_ == step_) return;
  settle();
  const Evaluation evaluation =
      evaluate_model(config_, schema_, transforms_, model_, pool_, options_.stop);
  if (stop_requested()) return;  // of a part of the data
  reporter_->report_evaluation(step_, evaluation);
  evaluated_step_ = step_;
  log_info(
      "eval at step {}: auc {:.5f}, logloss {:.5f}, ne {:.4f}, calibration {:.4f} over {} examples",
      step_, evaluation.auc, evaluation.logloss, evaluation.ne, evaluation.calibration,
      evaluation.examples);
}

void TrainingRun::start_checkpoint() {
  if (checkpointed_step_ == step_) return;
  checkpoints_->wait();  // one at a time: the snapshots of the one before are done
  settle();
  auto content = std::make_unique<CheckpointContent>();
  content->step = step_;
  content->position = position_;
  content->examples = reporter_->examples();
  content->nonfinite_steps = reporter_->nonfinite_steps();
  content->metrics = reporter_->metrics();
  content->transforms_json = transforms_.to_json(schema_);
  if (config_.train.deterministic) content->pending = stage_->pending_lookups(step_);
  content->capture(model_);
  checkpoints_->start(std::move(content));
  checkpointed_step_ = step_;
}

// ------------------------------------------------------------------------------ entry points

TrainOutcome train(const JobConfig& config, const TrainOptions& options) {
  return TrainingRun(config, options).run();
}

Evaluation evaluate(const JobConfig& config,
                    const std::string& checkpoint,
                    const std::atomic<bool>* stop) {
  const std::string path = find_checkpoint(checkpoint);
  if (path.empty()) throw Error(ErrorCode::kIo, concat("no checkpoint in '", checkpoint, "'"));
  ThreadPool pool(num_threads(config.train));
  const data::Schema schema = data::resolve_schema(config.data);
  const auto transforms = data::FittedTransforms::from_json(read_transforms(path), schema);
  Model model(config, schema, pool);
  load_checkpoint(path, model);
  return evaluate_model(config, schema, transforms, model, pool, stop);
}

}  // namespace satrap::trainer
