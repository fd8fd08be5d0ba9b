#include "src/trainer/reporter.h"

#include <algorithm>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/data/common_files.h"
#include "satrap/job/label_loss.h"
#include "satrap/pipeline/stages.h"
#include "satrap/trainer/metrics_json.h"
#include "satrap/trainer/run_series.h"
#include "src/trainer/run_numbers.h"

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

Json early_stopping_json(const EarlyStopping& e) {
  const bool has_best = e.state().best_step >= 0;
  return {{"metric", e.state().metric},
          {"best_step", has_best ? Json(e.state().best_step) : Json(nullptr)},
          {"best_value", has_best ? Json(e.state().best_value) : Json(nullptr)},
          {"stopped", e.should_stop()}};
}

/// "rmse 1.25000, mae 0.50000"
std::string metrics_text(const Evaluation& e) {
  if (e.loss_of_label == job::Loss::kBce) {
    return fmt::format(
        "auc {:.5f}, logloss {:.5f}, ne {:.4f}, calibration {:.4f} (mean p / mean label)", e.auc,
        e.logloss, e.ne, e.calibration);
  }
  std::string text;
  for (const auto& [metric, member] : metrics_of(e.loss_of_label)) {
    text += fmt::format("{}{} {:.5f}", text.empty() ? "" : ", ", metric, e.*member);
  }
  return text;
}

/// `name` precedes the metrics.
void log_evaluation(std::int64_t step, const std::string& name, const Evaluation& e) {
  log_info("eval at step {}: {}{} over {} examples", step, name, metrics_text(e), e.examples);
  if (const auto& grouped = e.grouped) {
    log_info("eval at step {}: {}gauc {:.5f} of {} groups", step, name, grouped->auc,
             grouped->num_groups);
  }
  for (const RankingAt& at : e.ranking.at) {
    log_info("eval at step {}: {}ndcg@{} {:.5f}, recall@{} {:.5f} of {} groups with a positive",
             step, name, at.k, at.ndcg, at.k, at.recall, e.ranking.num_groups);
  }
}

}  // namespace

Reporter::Reporter(Sources sources, const TrainOptions& options, std::int64_t examples)
    : sources_(sources),
      options_(options),
      window_(sources.config.train.metric_window,
              sources.dataset.schema().num_labels(),
              sources.dataset.schema().labels.front().source.has_classes()),
      watch_(sources.dataset.schema()),
      constant_inputs_(sources.dataset.schema()),
      progress_of_data_(sources.data, sources.timers),
      clock_(job::Interval::parse(sources.config.train.report_every, "train.report_every")),
      mean_labels_(sources.dataset.schema().labels.size()),
      examples_(examples),
      start_(std::chrono::steady_clock::now()) {
  initial_progress_ = std::max(0.0, progress(0));
  clock_.begin(initial_progress_);
  if (const auto scale = sources_.network.loss_scale()) told_skipped_steps_ = scale->skipped_steps;
}

void Reporter::add(ScoredRows rows, double loss, std::int64_t global_examples) {
  const std::int64_t num_classes = sources_.dataset.schema().labels.front().source.classes;
  rows.probabilities = of_classes(rows.probabilities, rows.labels, num_classes, scores_of_classes_);
  window_.add(rows);
  if (sources_.network.has_own_loss()) {
    own_losses_.emplace_back(global_examples, loss);
    num_own_ += global_examples;
    while (num_own_ - own_losses_.front().first >= sources_.config.train.metric_window) {
      num_own_ -= own_losses_.front().first;
      own_losses_.pop_front();
    }
  }
  warn(watch_.add_labels(rows.labels, rows.weights));
  examples_ += global_examples;
  examples_here_ += global_examples;
}

void Reporter::look_at(std::int64_t step, const data::Batch& batch) {
  constant_inputs_.add(batch);
  add_labels(batch, mean_labels_);
  LiveProgress* const live = options_.live;
  if (live == nullptr || !sources_.cluster.is_chief()) return;
  live->phase = LiveProgress::Phase::kTraining;
  live->set_trained({.step = step, .examples = examples_, .share = progress(step)});
}

void Reporter::end_training(bool is_finished, bool is_whole) {
  is_finished_ = is_finished;
  training_seconds_ = seconds();
  if (is_whole) warn(watch_.end_labels());
}

/// The ranks' examples are alike: the chief says what it sees in its own.
void Reporter::warn(const std::vector<std::string>& messages) const {
  if (!sources_.cluster.is_chief()) return;
  for (const std::string& message : messages) log_warning("{}", message);
}

/// With several labels: the metrics of the first, then those of each under its name.
Json Reporter::window_json(const Metrics& first) const {
  Json json = metrics_json(first, loss_of(0));
  const std::vector<data::NamedLabelConfig>& labels = sources_.dataset.schema().labels;
  if (labels.size() == 1) return json;
  Json& by_name = json["labels"];
  by_name[labels[0].name] = metrics_json(first, loss_of(0));
  for (std::size_t l = 1; l < labels.size(); ++l) {
    by_name[labels[l].name] = metrics_json(window(l), loss_of(l));
  }
  return json;
}

Metrics Reporter::window(std::size_t label) const {
  const data::NamedLabelConfig& config = sources_.dataset.schema().labels[label];
  Metrics metrics = window_.compute(static_cast<std::int64_t>(label), config.source.positive_weight,
                                    loss_of(label));
  if (label == 0 && !own_losses_.empty()) metrics.loss = own_loss();
  return metrics;
}

job::Loss Reporter::loss_of(std::size_t label) const {
  return job::loss_of(sources_.config.model, sources_.dataset.schema().labels[label].source);
}

double Reporter::own_loss() const {
  double sum = 0.0;
  for (const auto& [examples, loss] : own_losses_) sum += static_cast<double>(examples) * loss;
  return sum / static_cast<double>(num_own_);
}

double Reporter::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

double Reporter::progress(std::int64_t step, std::int64_t examples_in_flight) const {
  if (is_finished_) return 1.0;
  const job::TrainConfig& train = sources_.config.train;
  const auto examples = static_cast<double>(examples_ + examples_in_flight);
  double share = -1.0;
  const data::ReadStats stats = sources_.data.stats();
  const auto epochs = static_cast<double>(train.epochs);
  if (const std::int64_t rows = sources_.data.rows_per_epoch(); rows > 0) {
    share = examples / (static_cast<double>(rows) * epochs);
  } else if (stats.epoch_rows > 0.0) {
    share = examples / (stats.epoch_rows * epochs);
  }
  if (train.max_steps > 0) {
    share = std::max(share, static_cast<double>(step) / static_cast<double>(train.max_steps));
  }
  return std::min(share, 1.0);
}

Json Reporter::describe_start() const {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  Json start = {{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))},
                {"version", SATRAP_VERSION},
                {"machine", options_.machine},
                {"ranks", sources_.cluster.size()},
                {"shards", sources_.cluster.config().num_shards}};
  const std::string& first = sources_.config.default_run_dir;
  if (!first.empty()) start["series"] = series_of(first);
  return start;
}

void Reporter::report(std::int64_t step, bool is_due) {
  if (is_due) told_step_ = step;
  const double now = seconds();
  const double wait = sources_.timers.seconds(pipeline::kStageWait);
  const Mark& since = is_due ? told_ : last_;
  const double elapsed = std::max(now - since.seconds, 1e-9);
  const double elapsed_since_last = std::max(now - last_.seconds, 1e-9);
  const Metrics window = this->window();
  const auto histogram = sources_.queue.staleness_histogram();
  if (is_due) warn(watch_.add_training(window));

  Report report;
  report.step = step;
  report.examples = examples_;
  report.seconds = now;
  report.examples_per_second = static_cast<double>(examples_here_ - since.examples_here) / elapsed;
  report.loss_of_label = loss_of(0);
  report.window = window;
  report.is_due = is_due;
  report.progress = progress(step);
  if (report.progress > initial_progress_) {
    const double rate = (report.progress - initial_progress_) / now;
    report.eta_seconds = (1.0 - report.progress) / rate;
  }
  report.wait_share = std::min(1.0, (wait - since.wait_seconds) / elapsed);
  const std::vector<double> data_waits = progress_of_data_.waits_since(since.read_seconds, elapsed);
  report.data_wait_share = *std::ranges::max_element(data_waits);
  report.mean_staleness = mean_staleness(histogram);
  last_ = {now, wait, progress_of_data_.read_seconds(), examples_here_};
  if (is_due) told_ = last_;

  Json line = {{"step", step}, {"examples", examples_}, {"seconds", now}};
  line["examples_per_second"] = report.examples_per_second;
  line["train"] = window_json(window);
  line["wait_share"] = report.wait_share;
  add_data_waits(data_waits, line);
  const job::TrainConfig& train = sources_.config.train;
  line.update(run_numbers(sources_, histogram));
  if (!train.is_async()) line["staleness"]["bound"] = train.staleness_bound().at(step);
  if (const auto cache = sources_.tables.cache()) report.hit_rate = hit_rate_since(*cache);
  if (sources_.device_times != nullptr) {
    line["device_share"] = report.device_share = device_share_since(elapsed_since_last);
  }
  const DataProgress::Topic topic = progress_of_data_.topic();
  add_topic(topic, line);
  report.lag = topic.lag;
  report.age = topic.age;
  if (const auto scale = sources_.network.loss_scale()) tell_skipped(*scale);
  sources_.directory->append_metrics(line);
  if (options_.on_report) options_.on_report(report);
}

/// The share of the time since the last report for which the device had begun and not ended work.
double Reporter::device_share_since(double elapsed) {
  const double before = last_device_seconds_;
  last_device_seconds_ = sources_.device_times->busy_seconds();
  return std::min(1.0, (last_device_seconds_ - before) / elapsed);
}

void Reporter::tell_skipped(const dense::DenseNetwork::LossScale& scale) {
  const std::int64_t skipped = scale.skipped_steps - told_skipped_steps_;
  told_skipped_steps_ = scale.skipped_steps;
  if (skipped == 0) return;
  log_info(
      "fp16: scale lowered to 2^{}: the gradient of {} step{} overflowed, which updated nothing",
      std::lround(std::log2(scale.factor)), skipped, skipped == 1 ? "" : "s");
}

/// Since the last report; negative: no row was needed.
double Reporter::hit_rate_since(const embedding::CacheCounts& counts) {
  const std::int64_t hits = counts.hits - last_cache_.hits;
  const std::int64_t needed = hits + counts.misses - last_cache_.misses;
  last_cache_ = counts;
  return needed == 0 ? -1.0 : static_cast<double>(hits) / static_cast<double>(needed);
}

void Reporter::report_evaluation(std::int64_t step, const Evaluation& evaluation) {
  evaluation_ = evaluation;
  if (sources_.directory == nullptr) return;
  sources_.directory->append_metrics({{"step", step},
                                      {"examples", examples_},
                                      {"seconds", seconds()},
                                      {"eval", evaluation_json(evaluation)},
                                      {"reliability", reliability_json(evaluation)}});
  if (evaluation.labels.empty()) log_evaluation(step, "", evaluation);
  for (const Evaluation& label : evaluation.labels) {
    log_evaluation(step, label.label + " ", label);
  }
  warn(watch_.add_evaluation(evaluation.auc));  // NaN where there is none
}

std::map<std::string, double> Reporter::metrics() const {
  const Metrics window = this->window();
  std::map<std::string, double> all = {{"train.loss", window.loss}};
  for (const auto& [name, member] : metrics_of(loss_of(0))) {
    if (name == "auc" || name == "ne") all[concat("train.", name)] = window.*member;
  }
  const auto add = [&](const std::string& prefix, const Evaluation& evaluation) {
    for (const auto& [name, member] : metrics_of(evaluation.loss_of_label).first(2)) {
      all[concat(prefix, name)] = evaluation.*member;
    }
    if (evaluation.grouped) all[prefix + "gauc"] = evaluation.grouped->auc;
  };
  if (evaluation_) {
    add("eval.", *evaluation_);
    for (const Evaluation& label : evaluation_->labels) {
      add("eval.labels." + label.label + ".", label);
    }
  }
  return all;
}

/// By the names of those labels that are 0 or 1, or of those that are numbers; of the examples that
/// this process has trained on.
Json Reporter::mean_labels_json(bool are_numbers) const {
  Json means = Json::object();
  for (std::size_t l = 0; l < mean_labels_.size(); ++l) {
    const data::NamedLabelConfig& label = sources_.dataset.schema().labels[l];
    const bool is_meant = are_numbers ? label.source.is_number() : label.source.is_binary();
    if (is_meant) means[label.name] = json_number(mean_labels_[l].value());
  }
  return means;
}

void Reporter::write_summary(std::int64_t step,
                             bool finished,
                             bool resumed,
                             const EarlyStopping& early_stopping) {
  const auto histogram = sources_.queue.staleness_histogram();
  const data::ReadStats read = sources_.data.stats();
  const double total = training_seconds_;
  Json summary = {
      {"finished", finished},
      {"step", step},
      {"examples", examples_},
      {"seconds", total},
      {"examples_per_second", static_cast<double>(examples_here_) / std::max(total, 1e-9)},
      {"train", window_json(window())}};
  if (evaluation_) summary["eval"] = evaluation_json(*evaluation_);
  if (early_stopping.is_on()) {
    summary["early_stopping"] = early_stopping_json(early_stopping);
    summary["early_stopping"]["eval"] =
        sources_.directory->evaluation_of(early_stopping.state().best_step);
  }
  summary["mode"] = word_of(sources_.config.train.mode, job::kTrainModes);
  const job::TrainConfig& train = sources_.config.train;
  summary.update(run_numbers(sources_, histogram));
  summary["staleness"]["bound"] = train.is_async() ? Json() : Json(train.max_staleness());
  summary["staleness"]["histogram"] = histogram;
  add_data_waits(progress_of_data_.waits_since({}, std::max(total, 1e-9)), summary);
  summary["cpu_seconds"] = cpu_seconds();
  summary["bad_rows"] = read.bad_rows;
  if (read.bad_rows > 0) {
    // Counts the rows of this rank, which has trained on its part of the examples.
    const double good =
        static_cast<double>(examples_here_) / static_cast<double>(sources_.cluster.size());
    const auto bad = static_cast<double>(read.bad_rows);
    summary["bad_row_share"] = bad / (good + bad + static_cast<double>(read.left_out));
    summary["bad_row_reasons"] = sources_.data.bad_row_reasons();
  }
  add_topic(progress_of_data_.topic(), summary);
  summary["positive_share"] = mean_labels_json(/*are_numbers=*/false);
  if (const Json means = mean_labels_json(/*are_numbers=*/true); !means.empty()) {
    summary["mean_label"] = means;
  }
  summary["constant_inputs"] = constant_inputs_.names();
  if (const auto shared = data::common_files(sources_.dataset); !shared.empty()) {
    summary["eval_reads_training_rows"] = data::describe_common_files(shared);
  }
  summary["nonfinite_steps"] = nonfinite_steps_;
  summary["resumed"] = resumed;
  summary["warm_start"] = nullptr;
  if (const job::WarmStartConfig& warm = train.warm_start; !warm_start_.empty()) {
    summary["warm_start"] = {
        {"from", warm_start_},
        {"tables", warm_tables_},
        {"dense", warm.dense},
        {"optimizer_state", word_of(warm.optimizer_state, job::kOptimizerStates)}};
  }
  summary["seed"] = sources_.config.seed;
  summary["deterministic"] = sources_.config.train.deterministic;
  summary["version"] = SATRAP_VERSION;
  summary["device"] = sources_.config.is_on_gpu() ? "cuda" : "cpu";
  summary["ranks"] = sources_.cluster.size();
  summary["shards"] = sources_.cluster.config().num_shards;
  sources_.directory->write_summary(summary);
}

}  // namespace satrap::trainer
