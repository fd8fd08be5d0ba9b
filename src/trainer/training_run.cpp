#include "src/trainer/training_run.h"

#include <algorithm>
#include <array>
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/checkpoint/warm_start.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/core/text.h"
#include "satrap/data/common_files.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/row_count.h"
#include "satrap/pipeline/stages.h"
#include "src/trainer/evaluator.h"
#include "src/trainer/loaded_model.h"
#include "src/trainer/training_loaders.h"

namespace satrap::trainer {
namespace {

std::int64_t num_threads(const job::TrainConfig& config) {
  return config.threads > 0 ? config.threads : num_cpus();
}

}  // namespace

TrainingRun::TrainingRun(const job::JobConfig& config, const TrainOptions& options)
    : config_(config),
      options_(options),
      cluster_(config, options.cluster, options.stop),
      pool_(num_threads(config.train)),
      start_(JobStart::decide(config, options, cluster_, directory_)),
      schema_(start_.data.schema()),
      transforms_(data::FittedTransforms::from_json(start_.transforms, schema_)),
      loss_weights_(schema_, config_.model),
      model_(config, schema_, cluster_, pool_, options.make_network),
      checkpoints_(config_, cluster_),
      timers_(pipeline::kNumStages),
      ranks_(cluster_,
             timers_,
             {model_.device_ranks.get(), model_.stream.get(), model_.times.get()}),
      evaluations_({start_.data, config_, transforms_, model_, cluster_, ranks_, options_}) {
  if (start_.checkpoint.empty()) {
    start_anew();
  } else {
    restore();
  }
}

void TrainingRun::start_anew() {
  positions_.assign(static_cast<std::size_t>(cluster_.size()), start_position_);
  if (start_.warm_start.path.empty()) return model_.tables->begin({});
  const checkpoint::WarmStart warm(config_, start_.warm_start.path, model_);
  warm.load(model_);
  warm_tables_ = warm.tables();
}

void TrainingRun::restore() {
  const ScopedPhase loading(options_.live, LiveProgress::Phase::kLoading);
  checkpoint::RestoredState state =
      checkpoint::load_checkpoint(start_.checkpoint, model_, cluster_.rank(), cluster_.size());
  const checkpoint::Manifest& manifest = state.manifest;
  step_ = resumed_step_ = manifest.step;
  checkpoints_.continue_from(step_);
  start_position_ =
      checkpoint::with_batch_size(manifest.position_of(cluster_.rank(), cluster_.size()),
                                  start_.continuation.batch_size, config_.data.batch_size);
  if (start_.topic_row >= 0) {
    start_position_.next_row = start_position_.rows_read = start_.topic_row;
  }
  positions_ = manifest.positions;
  ended_epochs_ = manifest.ended_epochs;
  restored_examples_ = manifest.examples;
  restored_nonfinite_steps_ = manifest.nonfinite_steps;
  if (config_.train.deterministic && start_.continuation.has_same_input) {
    pending_ = std::move(state.pending);
  }
  if (manifest.early_stopping) evaluations_.restore(*manifest.early_stopping);
  log_info("resumed from {} (step {}, {} examples)", start_.checkpoint, step_, restored_examples_);
  if (config_.train.deterministic && !state.pending.empty() && pending_.empty()) {
    log_info("the lookups made ahead of step {} are made again, for other input", step_ + 1);
  }
}

void TrainingRun::open_pipeline() {
  data::ReadOptions read;
  read.seed = config_.seed;
  read.rank = cluster_.rank();
  read.world_size = cluster_.size();
  read.epochs = config_.train.epochs;
  read.start = start_position_;
  read.stop = options_.stop;
  loaders_ = open_loaders(config_, cluster_);
  if (loaders_) read.open_deliveries = loaders_->opener();
  source_ = options_.open_batches
                ? options_.open_batches(read)
                : data::open_batches(start_.data, transforms_, data::Role::kTrain, read);
  batches_ = std::make_unique<pipeline::GlobalBatches>(
      *source_, schema_, start_position_, cluster_.make_communicator("planner"), cluster_, timers_);

  const table::StalenessBound staleness = config_.train.staleness_bound();
  queue_ = std::make_unique<pipeline::StepQueue>(step_ + 1, staleness);
  driver_ = model_.tables->make_driver(*queue_,
                                       {.first_step = step_ + 1,
                                        .staleness = staleness,
                                        .deterministic = config_.train.deterministic,
                                        .is_async = config_.train.is_async(),
                                        .planned_capacity = config_.train.prefetch_batches,
                                        .restored = std::move(pending_)},
                                       timers_);
  const std::int64_t num_works =
      config_.train.max_in_flight() + max_lag() + model_.network->num_kept_batches();
  for (std::int64_t i = 0; i < num_works; ++i) {
    pipeline::Work& work = *works_.all->emplace_back(std::make_unique<pipeline::Work>());
    work.rows = model_.tables->access().make_rows();
    queue_->add_free(&work);
  }
  if (options_.memory_of_batches != nullptr) *options_.memory_of_batches = works_.all;
  reporter_ = std::make_unique<Reporter>(
      Reporter::Sources{config_, start_.data, *model_.tables, *model_.network, *source_, *queue_,
                        timers_, directory_ ? &*directory_ : nullptr, cluster_, model_.times.get()},
      options_, restored_examples_);
  reporter_->restore_nonfinite_steps(restored_nonfinite_steps_);
  reporter_->set_warm_start(start_.warm_start.name(), warm_tables_);
}

void TrainingRun::start_planner() {
  planner_ = std::make_unique<pipeline::PlannerThread>(*batches_, *queue_, *driver_, step_ + 1,
                                                       config_.train.max_steps);
}

void TrainingRun::begin_directory() {
  if (!cluster_.is_chief()) return;
  directory_->begin(step_, reporter_->describe_start());
  checkpoints_.open(*directory_, step_);
}

/// On all ranks: the dense network is that of the chief, or that of the shards from now on.
/// `first`: the first step's work; nullptr: there is none, on any rank.
void TrainingRun::begin_dense(const pipeline::Work* first) {
  const bool is_new =
      step_ == 0 && !(config_.train.warm_start.is_on() && config_.train.warm_start.dense);
  if (is_new && first != nullptr && config_.train.start_from_average) {
    start_from_average(first->batch);
  }
  if (config_.train.is_async()) {
    async_dense_ = std::make_unique<pipeline::AsyncDense>(
        *model_.network, config_.dense_optimizer, *model_.shards, ranks_, cluster_.is_chief());
  } else {
    ranks_.copy_from_chief(*model_.network);
  }
}

/// Over the first batches of all ranks.
void TrainingRun::start_from_average(const data::Batch& batch) {
  const std::vector<double> mine = loss_weights_.sums_of(batch);
  const std::vector<double> all = ranks_.gather(std::span<const double>(mine));
  model_.network->set_base_rates(loss_weights_.rates_of(all));
}

TrainOutcome TrainingRun::run() {
  open_pipeline();
  begin_directory();
  tell_start();
  start_planner();

  // Several ranks stop together, by their votes.
  const std::atomic<bool>* stop = cluster_.size() == 1 ? options_.stop : nullptr;
  bool stopped = evaluations_.is_owed(step_, ended_epochs_) && !evaluate();
  const EarlyStopping& early_stopping = evaluations_.early_stopping();
  const auto next_work = [&]() -> pipeline::Work* {
    if (stopped || early_stopping.should_stop()) return nullptr;
    const ScopedStage timer(timers_, pipeline::kStageWait);
    return queue_->take_looked_up(stop);
  };
  if (options_.live != nullptr) options_.live->phase = LiveProgress::Phase::kReading;
  pipeline::Work* work = next_work();
  begin_dense(work);
  for (; work != nullptr; work = next_work()) {
    const std::optional<pipeline::StepVotes> voted = enqueue(*work);
    stopped = !voted;
    if (stopped) break;
    const pipeline::StepVotes& votes = *voted;
    in_flight_.push_back(work);
    const bool needs_all = votes.report || votes.evaluate || votes.checkpoint || votes.stop;
    retire_down_to(needs_all ? 0 : max_lag());
    if (votes.report && cluster_.is_chief()) {
      reporter_->report(step_, report_due_ == ReportClock::Due::kReport);
    }
    stopped = (votes.evaluate && !evaluate()) || votes.stop;
    const bool is_best = early_stopping.is_best(step_);
    if (votes.checkpoint || is_best) start_checkpoint(is_best);
  }
  const bool reached_end = queue_->has_ended();
  // All ranks end before the same batch, which one of them cannot read.
  const std::exception_ptr unreadable = reached_end ? batches_->error() : nullptr;
  if (unreadable && !has_trained()) std::rethrow_exception(unreadable);
  retire_down_to(0);
  settle_within_grace();
  if (config_.train.is_async()) end_async();
  // A stop ends a pipe too, on any rank.
  stopped = stopped || stop_requested();
  const bool finished =
      early_stopping.should_stop() || !ranks_.any(stopped || !reached_end || unreadable != nullptr);
  if (finished) require_an_update();
  finish(finished, /*has_failed=*/unreadable != nullptr && !finished);
  planner_.reset();
  if (unreadable && !finished) std::rethrow_exception(unreadable);
  if (!cluster_.is_chief()) return {finished, false, "", ""};
  return {finished && !stop_requested(), true, directory_->path("summary.json"),
          checkpoint::find_checkpoint(config_.run_dir)};
}

/// What the user is about to wait for.
void TrainingRun::tell_start() const {
  if (!cluster_.is_chief()) return;
  const std::int64_t rows = source_->rows_per_epoch(), bytes = source_->stats().total_bytes;
  std::string data;
  if (rows > 0) {
    data = fmt::format("; {} rows", format_count(static_cast<double>(rows)));
  } else if (bytes > 0) {
    data = fmt::format("; {} of data", format_bytes(bytes));
  }
  if (config_.train.epochs > 1 && !data.empty()) {
    data += fmt::format(", {} times", config_.train.epochs);
  }
  log_info("{} with {} dense parameters and {} table{}{}; batch {}, {} thread{} on {}; {}",
           word_of(config_.model.type, job::kModelTypes),
           format_count(static_cast<double>(model_.network->num_parameters())),
           model_.specs.tables.size(), model_.specs.tables.size() == 1 ? "" : "s", data,
           config_.data.batch_size, pool_.num_threads(), pool_.num_threads() == 1 ? "" : "s",
           word_of(config_.device, job::kJobDevices), shown_path(config_.run_dir));
  const std::vector<std::string> shared = data::common_files(start_.data);
  if (!shared.empty()) log_warning("{}", data::describe_common_files(shared));
}

/// The last evaluation, checkpoint and summary; of a run that has failed the checkpoint alone.
void TrainingRun::finish(bool finished, bool has_failed) {
  const ScopedPhase saving(options_.live, LiveProgress::Phase::kSaving);
  reporter_->end_training(finished, finished && resumed_step_ < 0);
  // What a finished run has written stays, whoever starts it again.
  const bool is_over =
      cluster_.is_chief() && finished && !has_trained() && directory_->has_finished(step_);
  if (is_over) {
    log_info(
        "this run had finished, after step {}, and has nothing left to train: train.epochs or "
        "train.max_steps say how much there is",
        step_);
  }
  if (cluster_.is_chief() && !is_over && !reporter_->has_told(step_))
    reporter_->report(step_, true);
  if (finished && config_.data.has_eval()) evaluate();
  start_checkpoint(/*is_needed=*/true);
  // No rank ends before its rows are in the checkpoint.
  model_.tables->wait_joined();
  ranks_.barrier();
  if (!cluster_.is_chief()) return;
  checkpoints_.writer().wait();
  if (evaluations_.has(step_)) {
    checkpoints_.writer().update_evaluation(step_, reporter_->metrics(), evaluations_.state());
  }
  if (!is_over && !has_failed) {
    // A signal may have cut the evaluation short.
    reporter_->write_summary(step_, finished && !stop_requested(), resumed_step_ >= 0,
                             evaluations_.early_stopping());
  }
  directory_->end();
}

/// Until now no rank has waited for another. From here on all ranks see the same state.
void TrainingRun::end_async() {
  async_dense_->flush();
  ranks_.barrier();
  async_dense_->pull_everything();
  async_dense_.reset();
  const std::int64_t mine = reporter_->examples() - restored_examples_;
  std::int64_t examples = 0;
  for (const std::int64_t theirs : ranks_.gather(std::span(&mine, 1))) examples += theirs;
  reporter_->set_examples(restored_examples_ + examples / cluster_.size());
  const data::DataPosition& at = positions_.front();
  const std::array<std::int64_t, 4> position = {at.epoch, at.batches, at.next_row, at.rows_read};
  const std::vector<std::int64_t> all = ranks_.gather(std::span<const std::int64_t>(position));
  positions_.clear();
  for (std::size_t i = 0; i + 3 < all.size(); i += 4) {
    positions_.push_back({all[i], all[i + 1], all[i + 2], all[i + 3]});
  }
}

void TrainingRun::settle_within_grace() {
  constexpr std::chrono::seconds kGrace(2);
  // Several ranks stop after the same step. They read files, whose end comes, or wait for nothing.
  if (cluster_.size() > 1 || !stop_requested()) return settle();
  if (driver_->wait_applied_for(step_, kGrace)) return;
  // Deterministic hybrid looks up later steps before it applies the last updates, and the input of
  // those steps will not arrive.
  log_warning(
      "stopped while waiting for input: the lookups of the next steps are not made, so that "
      "a resumed run may differ from an undisturbed one");
  source_->close();
  settle();
}

bool TrainingRun::evaluate() {
  if (evaluations_.has(step_)) return true;
  const ScopedPhase evaluating(options_.live, LiveProgress::Phase::kEvaluating);
  settle();
  return evaluations_.run(step_, *reporter_);
}

// ------------------------------------------------------------------------------ entry points

TrainOutcome train(const job::JobConfig& job, const TrainOptions& options) {
  job::JobConfig config = job;
  data::choose_batch_size(config.data);  // of a job that was not read from a file
  bool has_trained = false;
  try {
    TrainingRun run(config, options);
    try {
      return run.run();
    } catch (...) {
      has_trained = run.has_trained();
      throw;
    }
  } catch (const Error& error) {
    // Other processes of the job are not there, perhaps because they have been stopped too; or
    // brokers, which are no longer waited for.
    const bool is_stopped = options.stop != nullptr && *options.stop;
    if (error.code() != ErrorCode::kIo || !is_stopped || has_trained) throw;
    log_info("stopped before the first step: {}", error.what());
    return {.finished = false,
            .is_chief = options.cluster.rank == 0,
            .summary_path = "",
            .last_checkpoint = ""};
  }
}

Evaluation evaluate(const job::JobConfig& config,
                    const checkpoint::UsedCheckpoint& checkpoint,
                    const std::atomic<bool>* stop,
                    const pipeline::MakeNetwork& make_network) {
  LoadedModel loaded(config, checkpoint, make_network);
  StageTimers timers(pipeline::kNumStages);
  pipeline::RankGroup ranks(loaded.cluster, timers);
  return evaluate_model(loaded.data, loaded.config, loaded.transforms, loaded.model, loaded.cluster,
                        ranks, stop)
      .value_or(Evaluation{});
}

}  // namespace satrap::trainer
