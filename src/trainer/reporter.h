#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "satrap/core/stage_timer.h"
#include "satrap/data/batch_source.h"
#include "satrap/data/dataset.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/step_queue.h"
#include "satrap/pipeline/work.h"
#include "satrap/trainer/metrics.h"
#include "satrap/trainer/trainer.h"
#include "src/trainer/constant_inputs.h"
#include "src/trainer/data_progress.h"
#include "src/trainer/early_stopping.h"
#include "src/trainer/mean_label.h"
#include "src/trainer/report_clock.h"
#include "src/trainer/run_directory.h"
#include "src/trainer/watch.h"

namespace satrap::trainer {

/// Collects the metrics of training. The chief's reporter writes them: reports to the user and
/// metrics.jsonl, and summary.json at the end. Counts are of all ranks; training metrics, stage
/// times and memory are of this one. Used by the dense thread.
class Reporter {
 public:
  struct Sources {  // sources of the numbers; all outlive the reporter
    const job::JobConfig& config;
    const data::Dataset& dataset;
    pipeline::EmbeddingTables& tables;
    dense::DenseNetwork& network;
    const data::BatchSource& data;
    const pipeline::StepQueue& queue;
    const StageTimers& timers;
    RunDirectory* directory;  // of the chief; the other ranks write nothing
    const pipeline::Cluster& cluster;
    backend::StreamTimes* device_times;  // nullptr: there is no device
  };

  /// `examples`: trained on before this process.
  Reporter(Sources sources, const TrainOptions& options, std::int64_t examples);

  /// A finished step: this rank's rows, with predictions made before its update, as the network
  /// gives them, the network's loss, and the number of examples of all ranks.
  void add(ScoredRows rows, double loss, std::int64_t global_examples);
  /// What the ranks have told of their data by a step that is finished.
  void look_at(const pipeline::RankShares& shares) { progress_of_data_.look_at(shares); }
  void add_nonfinite() { ++nonfinite_steps_; }

  /// The batch of such a step, and its number, for whoever watches.
  void look_at(std::int64_t step, const data::Batch& batch);

  /// Training is over: `seconds` of the summary ends here, whatever evaluation follows.
  /// `is_finished`: nothing is left to train on, so that progress is 100 %. `is_whole`: this
  /// process has seen all of the job's examples.
  void end_training(bool is_finished, bool is_whole);

  /// The entry of metrics.jsonl about this process and its start.
  nlohmann::ordered_json describe_start() const;

  /// Whether to report after this step; `ended_epochs` as in job::Interval, `examples`: of steps
  /// that have not been added yet.
  ReportClock::Due due(std::int64_t step, std::int64_t ended_epochs, std::int64_t examples) {
    return clock_.due(step, ended_epochs, seconds(), progress(step, examples));
  }

  /// Reports and appends to metrics.jsonl. `is_due`: the user is told.
  void report(std::int64_t step, bool is_due);
  bool has_told(std::int64_t step) const { return told_step_ == step; }
  /// Logs the evaluation and appends it to metrics.jsonl.
  void report_evaluation(std::int64_t step, const Evaluation& evaluation);
  void write_summary(std::int64_t step,
                     bool finished,
                     bool resumed,
                     const EarlyStopping& early_stopping);

  /// The checkpoint from which this process started the job, and the tables taken from it.
  void set_warm_start(std::string checkpoint, std::vector<std::string> tables) {
    warm_start_ = std::move(checkpoint);
    warm_tables_ = std::move(tables);
  }

  /// Current metrics by name, for a checkpoint's manifest.
  std::map<std::string, double> metrics() const;
  std::int64_t examples() const { return examples_; }

  /// Sets the true number, if it could only be estimated before.
  void set_examples(std::int64_t examples) {
    examples_here_ += examples - examples_;
    examples_ = examples;
  }
  std::int64_t nonfinite_steps() const { return nonfinite_steps_; }
  void restore_nonfinite_steps(std::int64_t steps) { nonfinite_steps_ = steps; }

 private:
  void warn(const std::vector<std::string>& messages) const;
  /// The share of the whole job that is done; negative: unknown.
  double progress(std::int64_t step, std::int64_t examples_in_flight = 0) const;
  nlohmann::ordered_json mean_labels_json(bool are_numbers) const;
  nlohmann::ordered_json window_json(const Metrics& first) const;
  Metrics window(std::size_t label = 0) const;
  job::Loss loss_of(std::size_t label) const;
  /// The mean loss of a network that has its own, over the window.
  double own_loss() const;
  double seconds() const;
  double hit_rate_since(const embedding::CacheCounts& counts);
  double device_share_since(double elapsed);
  void tell_skipped(const dense::DenseNetwork::LossScale& scale);

  Sources sources_;
  const TrainOptions& options_;
  WindowedMetrics window_;
  std::deque<std::pair<std::int64_t, double>>
      own_losses_;            // [steps] examples, loss: the same window
  std::int64_t num_own_ = 0;  // examples in it
  TrainingWatch watch_;
  ConstantInputs constant_inputs_;
  DataProgress progress_of_data_;
  ReportClock clock_;
  std::vector<MeanLabel> mean_labels_;  // [num_labels], of this rank's examples
  std::vector<float> scores_of_classes_;
  std::optional<Evaluation> evaluation_;
  std::int64_t examples_;           // in all
  std::int64_t examples_here_ = 0;  // by this process
  std::int64_t nonfinite_steps_ = 0;
  std::int64_t told_skipped_steps_ = 0;  // for the loss scale
  std::string warm_start_;               // "": none
  std::vector<std::string> warm_tables_;
  std::chrono::steady_clock::time_point start_;
  double initial_progress_ = 0.0;
  bool is_finished_ = false;
  double training_seconds_ = 0.0;  // once training is over
  struct Mark {
    double seconds = 0.0, wait_seconds = 0.0;
    std::vector<double> read_seconds = {};  // [ranks] waiting for data
    std::int64_t examples_here = 0;
  };
  Mark last_, told_;  // at the last report, and at the last one that was due
  double last_device_seconds_ = 0.0;
  embedding::CacheCounts last_cache_;
  std::int64_t told_step_ = -1;  // of the last report that was due
};

}  // namespace satrap::trainer
