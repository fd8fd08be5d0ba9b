#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "satrap/checkpoint/continuation.h"
#include "satrap/core/grouped_auc.h"
#include "satrap/core/grouped_ranking.h"
#include "satrap/data/open_rows.h"
#include "satrap/job/cluster_config.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"
#include "satrap/trainer/live_progress.h"
#include "satrap/trainer/metrics.h"
#include "satrap/trainer/reliability.h"

namespace satrap::trainer {

/// Progress of a running job for the user, made at every report interval, and between them, by the
/// thread of train(). With several labels, metrics are those of the first.
struct Report {
  std::int64_t step = 0;
  std::int64_t examples = 0;
  double seconds = 0.0;                       // since the start of training in this process
  double examples_per_second = 0.0;           // since the last report
  job::Loss loss_of_label = job::Loss::kBce;  // of the first label, whose metrics these are
  Metrics window = {};                        // over the latest examples
  double progress = -1.0;                     // share of the whole job in [0, 1]; negative: unknown
  double eta_seconds = -1.0;                  // negative: unknown
  double wait_share = 0.0;                    // share of time the dense step waited for its input
  double data_wait_share = 0.0;  // the same of the rank that waited most for rows of its data
  double mean_staleness = 0.0;
  std::int64_t lag = -1;   // messages of the topic that are there and not read; -1: no topic
  double age = -1.0;       // seconds since those trained on were written; negative: unknown
  double hit_rate = -1.0;  // of the cache of rows, since the last report; negative: none
  double device_share =
      -1.0;            // of the time since then the GPU was at work; negative: there is none
  bool is_due = true;  // false: a point between those that train.report_every asks for
};

struct TrainOptions {
  job::ClusterConfig cluster = {};  // this process among those of the job
  bool resume = false;           // continue from the newest checkpoint of the run directory, if any
  std::string resume_from = {};  // continue from this checkpoint
  bool accept_changed_data = false;  // continue although data that were read have changed
  bool overwrite = false;            // remove the files of an earlier run from the run directory
  const std::atomic<bool>* stop = nullptr;  // set by a signal handler: checkpoint and return
  std::function<void(const Report&)> on_report = {};  // may be empty
  LiveProgress* live = nullptr;  // the chief writes what it is doing; may be null
  // For programs that supply their own batches, with the features of the configuration: opens them
  // instead of data.train. Empty: data.train is read.
  std::function<std::unique_ptr<data::BatchSource>(const data::ReadOptions&)> open_batches = {};
  // For programs that compute the dense network: makes it instead of that of `model`.
  pipeline::MakeNetwork make_network = {};
  // Gets an owner of the memory of batches, which may outlive the run; may be null.
  std::shared_ptr<const void>* memory_of_batches = nullptr;
  std::string machine = {};  // description of this machine, for metrics.jsonl
};

struct TrainOutcome {
  bool finished = false;  // false: stopped by `stop`, here or on another rank
  bool is_chief = true;   // the paths below are the chief's
  std::string summary_path;
  std::string last_checkpoint;  // empty: there is none, or it was stopped before the first step
};

/// Trains a job, in this process or as one rank of several, which all call it with the same
/// configuration: writes config.yaml, metrics.jsonl, checkpoints/ and summary.json to its run
/// directory. Blocks until the data ends, max_steps is reached or stop is set. Throws Error; the
/// run directory then holds the last published checkpoint and no half-written one under a final
/// name.
TrainOutcome train(const job::JobConfig& config, const TrainOptions& options);

/// Metrics of the evaluation rows with one value of a column.
struct Slice {
  std::optional<std::string> value =
      {};  // printable, maybe cut; nothing: all other values together
  Metrics metrics = {};
};

/// The slices of a column of train.slices, the most frequent first.
struct SlicedColumn {
  std::string name;
  std::vector<Slice> slices = {};
};

/// Metrics of a model on the job's evaluation data. Examples without the label or with weight 0
/// count nowhere, not even in `examples`.
struct Evaluation : Metrics {
  job::Loss loss_of_label = job::Loss::kBce;
  bool is_weighted = false;                      // the data have weights
  std::optional<GroupedAuc> grouped = {};        // with data.group_by, where the loss is bce
  GroupedRanking ranking = {};                   // likewise with train.metrics_at, of each
  std::vector<ReliabilityBin> reliability = {};  // where the loss is bce
  std::vector<SlicedColumn> slices = {};         // with train.slices, of each column

  /// With several labels: the metrics of each, in their order. The numbers above are those of the
  /// first.
  std::vector<Evaluation> labels = {};
  std::string label = {};
};

/// Evaluates a checkpoint. Throws Error(kInvalidConfig) if it was trained with a configuration
/// whose inputs or labels mean something else (check_predictions). `make_network`: as in
/// TrainOptions.
Evaluation evaluate(const job::JobConfig& config,
                    const checkpoint::UsedCheckpoint& checkpoint,
                    const std::atomic<bool>* stop,
                    const pipeline::MakeNetwork& make_network = {});

}  // namespace satrap::trainer
