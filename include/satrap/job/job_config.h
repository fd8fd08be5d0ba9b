#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/data/config.h"
#include "satrap/job/embedding_config.h"
#include "satrap/job/interval.h"
#include "satrap/job/model_config.h"
#include "satrap/job/precision.h"
#include "satrap/job/table_config.h"
#include "satrap/table/staleness_bound.h"

namespace satrap::job {

/// The metric that early stopping observes.
enum class StoppingMetric { kAuc, kGauc, kLogloss, kNe, kRmse, kMae, kAccuracy };
inline constexpr Choice<StoppingMetric> kStoppingMetrics[] = {
    {"auc", StoppingMetric::kAuc},          {"gauc", StoppingMetric::kGauc},
    {"logloss", StoppingMetric::kLogloss},  {"ne", StoppingMetric::kNe},
    {"rmse", StoppingMetric::kRmse},        {"mae", StoppingMetric::kMae},
    {"accuracy", StoppingMetric::kAccuracy}};
constexpr bool should_rise(StoppingMetric metric) {
  return metric == StoppingMetric::kAuc || metric == StoppingMetric::kGauc ||
         metric == StoppingMetric::kAccuracy;
}

/// Whether a warm start takes the optimizer's state too.
enum class OptimizerState { kKeep, kReset };
inline constexpr Choice<OptimizerState> kOptimizerStates[] = {{"keep", OptimizerState::kKeep},
                                                              {"reset", OptimizerState::kReset}};

enum class TrainMode { kSync, kHybrid, kAsync };
inline constexpr Choice<TrainMode> kTrainModes[] = {{"sync", TrainMode::kSync},
                                                    {"hybrid", TrainMode::kHybrid},
                                                    {"async", TrainMode::kAsync}};

/// How the staleness bound of hybrid grows.
enum class StalenessSchedule { kConstant, kSqrt };
inline constexpr Choice<StalenessSchedule> kStalenessSchedules[] = {
    {"constant", StalenessSchedule::kConstant},
    {"sqrt", StalenessSchedule::kSqrt}};

/// The place where a job trains.
enum class JobDevice { kAuto, kCpu, kCuda };
inline constexpr Choice<JobDevice> kJobDevices[] = {{"auto", JobDevice::kAuto},
                                                    {"cpu", JobDevice::kCpu},
                                                    {"cuda", JobDevice::kCuda},
                                                    {"gpu", JobDevice::kCuda}};

/// `train.early_stopping` of the configuration.
struct EarlyStoppingConfig {
  StoppingMetric metric = StoppingMetric::kAuc;
  std::int64_t patience = 0;  // evaluations; 0: never stop early
  double min_delta = 0.0;
  void visit(ConfigVisitor& v);
  bool is_on() const { return patience > 0; }
};

/// `train.expect` of the configuration.
struct ExpectConfig {
  std::vector<double> auc = {};   // [low, high]; empty: no expectation
  std::int64_t min_examples = 0;  // trained on; after fewer nothing is expected
  void visit(ConfigVisitor& v);
  bool is_on() const { return !auc.empty(); }
};

/// `train.warm_start` of the configuration.
struct WarmStartConfig {
  std::string from = "";  // empty: no warm start
  std::vector<std::string> tables = {"*"};
  bool dense = true;
  OptimizerState optimizer_state = OptimizerState::kKeep;
  void visit(ConfigVisitor& v);

  bool is_on() const { return !from.empty(); }
  bool keeps_state() const { return optimizer_state == OptimizerState::kKeep; }
};

/// `train` of the configuration.
struct TrainConfig {
  TrainMode mode = TrainMode::kHybrid;
  std::int64_t staleness = 4;  // the largest τ of hybrid
  StalenessSchedule staleness_schedule = StalenessSchedule::kSqrt;
  double staleness_factor = 0.125;  // of sqrt
  bool deterministic = false;       // lookups of step t read exactly E_{t-1-τ(t)}
  Precision precision = Precision::kFp32;
  bool start_from_average = true;  // the first predictions are the mean label of the first batch
  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;         // 0: until the data ends
  std::int64_t threads = 0;           // 0: one per CPU
  std::int64_t prefetch_batches = 4;  // planned ahead of the lookups
  std::int64_t max_nonfinite_steps = 10;
  std::int64_t metric_window = 100'000;  // examples of the progressive validation
  std::string report_every = "10s";
  std::string eval_every = "never";
  std::vector<std::int64_t> metrics_at = {};  // ranks of NDCG and recall
  std::vector<std::string> slices = {};       // columns of the evaluation data
  bool tensorboard = false;
  EarlyStoppingConfig early_stopping;
  ExpectConfig expect;
  WarmStartConfig warm_start;
  void visit(ConfigVisitor& v);

  /// The largest effective bound: 0 in sync mode. Async has none; there it is how many steps
  /// lookups may run ahead.
  std::int64_t max_staleness() const { return mode == TrainMode::kSync ? 0 : staleness; }
  table::StalenessBound staleness_bound() const {
    const bool grows = staleness_schedule == StalenessSchedule::kSqrt;
    return {max_staleness(), grows ? staleness_factor : 0.0};
  }
  bool is_async() const { return mode == TrainMode::kAsync; }

  /// Largest number of batches that are planned, looked up or trained on at any time.
  std::int64_t max_in_flight() const { return prefetch_batches + max_staleness() + 2; }
};

/// `cluster` of the configuration.
struct ClusterOptions {
  std::string timeout = "10min";
  std::string heartbeat = "10s";
  void visit(ConfigVisitor& v);

  std::int64_t timeout_ms() const;
  std::int64_t heartbeat_ms() const;
};

/// `checkpoint` of the configuration.
struct CheckpointConfig {
  std::string every = "10min";
  std::int64_t keep = 3;
  std::int64_t max_failures = 3;
  std::string max_unsaved = "never";
  void visit(ConfigVisitor& v);

  std::optional<double> max_unsaved_seconds() const;  // nullopt: never
};

/// The whole configuration file of a job.
struct JobConfig {
  std::string run_dir;
  std::string folder;  // where relative paths begin; once read, it and all paths are absolute
  JobDevice device = JobDevice::kAuto;
  std::int64_t seed = 1;
  data::DataConfig data;
  std::map<std::string, TableConfig> tables;
  std::map<std::string, FeatureConfig> features;
  ModelConfig model;
  DenseOptimizerConfig dense_optimizer;
  EmbeddingConfig embedding;
  TrainConfig train;
  CheckpointConfig checkpoint;
  ClusterOptions cluster;
  std::string default_run_dir;  // once read, where nobody named another; not part of the file
  std::string why_not_on_gpu;   // where device was auto and there is one; not part of the file
  void visit(ConfigVisitor& v);

  bool is_on_gpu() const { return device == JobDevice::kCuda; }

  /// Whether libtorch computes the dense network: on a GPU it does, unless told otherwise. A user's
  /// module may not be fit for that.
  bool uses_graph() const {
    const bool may =
        is_on_gpu() && model.type != ModelType::kTorchScript && model.type != ModelType::kPython;
    return model.engine == Engine::kGraph || (model.engine == Engine::kAuto && may);
  }

  /// Why rows cannot be trained in a cache, for the user; "" if they can.
  std::string why_no_cache() const;

  /// Checks the rules that involve several fields, except check_model. Throws
  /// Error(kInvalidConfig), with the place of the value if `origins` has it.
  void validate(const ConfigOrigins& origins) const;
};

}  // namespace satrap::job
