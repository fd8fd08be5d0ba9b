// The rules of a job that involve several of its fields.

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/data/remote_folder.h"
#include "satrap/data/validate.h"
#include "satrap/job/config_place.h"
#include "satrap/job/interval.h"
#include "satrap/job/job_config.h"
#include "satrap/job/label_loss.h"

namespace satrap::job {
namespace {

using Place = std::function<std::string(const std::string& key)>;

void check_device(const JobConfig& config, const Place& at) {
  if (!config.is_on_gpu()) return;
  if (config.train.is_async()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("device"),
                       ": cuda does not go with mode async, which has the parameters "
                       "of the dense network on the shards; write cpu"));
  }
  if (!config.embedding.has_cache() && !config.uses_graph()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("device"),
                       ": nothing would be on the GPU: without embedding.cache.memory the rows are "
                       "not, and with model.engine: ",
                       word_of(config.model.engine, kEngines), " the network of model '",
                       word_of(config.model.type, kModelTypes),
                       "' is not; write model.engine: graph, or cpu"));
  }
}

void check_cache(const JobConfig& config, const Place& at) {
  if (!config.embedding.has_cache()) return;
  if (const std::string why = config.why_no_cache(); !why.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("embedding.cache.memory"), ": ", why, "; write 0"));
  }
}

/// Its place in a file or on the command line may show a password.
void check_run_dir(const std::string& run_dir) {
  if (!data::is_url(run_dir)) return;
  try {
    const data::RemoteFolder is_possible(run_dir);
  } catch (const Error& error) {
    throw Error(error.code(), concat("run_dir: ", error.what()));
  }
}

void check_early_stopping(const JobConfig& config, const Place& at) {
  const std::string key = "train.early_stopping";
  const auto fail = [&](const std::string& field, const std::string& rule) {
    throw Error(ErrorCode::kInvalidConfig, concat(at(key + field), ": ", rule));
  };
  const EarlyStoppingConfig& early = config.train.early_stopping;
  if (!early.is_on()) {
    const EarlyStoppingConfig unset;
    const bool is_unset =
        early.metric == unset.metric || early.metric == default_metric(first_loss(config));
    if (!is_unset) fail(".metric", "has no effect without patience");
    if (early.min_delta > unset.min_delta) fail(".min_delta", "has no effect without patience");
    return;
  }
  if (config.train.is_async()) {
    fail(".patience", "async has a common state of all ranks to evaluate only at its end");
  }
  if (!config.data.has_eval()) fail(".patience", "there is no evaluation data (data.eval)");
  if (early.metric == StoppingMetric::kGauc && config.data.group_by.empty())
    fail(".metric", "gauc needs data.group_by");
  if (config.train.eval_every == "never") {
    fail(".patience", "counts evaluations during training; set train.eval_every");
  }
}

void check_metrics_at(const JobConfig& config, const Place& at) {
  const auto fail = [&](const std::string& rule) {
    throw Error(ErrorCode::kInvalidConfig, concat(at("train.metrics_at"), ": ", rule));
  };
  const std::vector<std::int64_t>& ks = config.train.metrics_at;
  if (ks.empty()) return;
  if (!config.data.has_eval()) fail("there is no evaluation data (data.eval)");
  if (config.data.group_by.empty()) {
    fail("needs data.group_by: the rows of a group, such as a user, are ranked");
  }
  for (const std::int64_t k : ks) {
    if (std::ranges::count(ks, k) > 1) fail(concat("has ", k, " twice"));
  }
}

void check_slices(const JobConfig& config, const Place& at) {
  const auto fail = [&](const std::string& rule) {
    throw Error(ErrorCode::kInvalidConfig, concat(at("train.slices"), ": ", rule));
  };
  const std::vector<std::string>& columns = config.train.slices;
  if (columns.empty()) return;
  if (!config.data.has_eval()) fail("there is no evaluation data (data.eval)");
  if (config.data.is_synthetic()) fail("data.format synthetic has no columns of text");
  for (const std::string& column : columns) {
    if (column.empty()) fail("has a column without a name");
    if (std::ranges::count(columns, column) > 1) fail(concat("has '", column, "' twice"));
  }
}

void check_expect(const JobConfig& config, const Place& at) {
  const auto fail = [&](const std::string& field, const std::string& rule) {
    throw Error(ErrorCode::kInvalidConfig, concat(at("train.expect" + field), ": ", rule));
  };
  const ExpectConfig& expect = config.train.expect;
  if (!expect.is_on()) {
    if (expect.min_examples > 0) fail(".min_examples", "has no effect without auc");
    return;
  }
  if (expect.auc.size() != 2 || expect.auc[0] > expect.auc[1]) {
    fail(".auc", "must be two numbers, [low, high], of which the second is not smaller");
  }
  if (!config.data.has_eval()) fail(".auc", "there is no evaluation data (data.eval)");
}

/// `at`: the place of train.precision.
void check_fp16(const JobConfig& config, const std::string& at) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorCode::kInvalidConfig, concat(at, ": fp16 ", why));
  };
  if (config.model.type == ModelType::kTorchScript) {
    refuse("does not go with model 'torchscript', which computes as its module says; write fp32");
  }
  if (!config.uses_graph()) {
    refuse("needs a network that libtorch computes; write model.engine: graph, or fp32 or bf16");
  }
  if (config.train.is_async()) {
    refuse(
        "has a loss scale that all ranks change together, and in mode async they have no step in "
        "common; write fp32 or bf16, or another mode");
  }
}

/// One of epochs needs data whose end is known before it comes.
void check_interval(const JobConfig& config, const std::string& text, const std::string& where) {
  if (Interval::parse(text, where).epochs == 0) return;
  const bool is_stdin = std::ranges::count(config.data.train.path, "-") > 0;
  if (!is_stdin && !config.data.kafka.is_endless()) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat(where, ": '", text, "' never comes to pass: ",
                     is_stdin ? "standard input" : "a topic without an end",
                     " has no epochs; write steps or a time, such as '1000 steps' or '10min'"));
}

void check_modes(const JobConfig& config, const ConfigOrigins& origins, const Place& at) {
  const TrainConfig& train = config.train;
  const auto refuse = [&](const std::string& key, const auto&... what) {
    throw Error(ErrorCode::kInvalidConfig, concat(at(key), ": ", what...));
  };
  if (train.mode == TrainMode::kSync && origins.contains("train.staleness") &&
      train.staleness != 0) {
    refuse("train.staleness", "mode sync has no staleness, got ", train.staleness,
           "; write mode: hybrid or leave it out");
  }
  const bool is_constant = train.staleness_schedule == StalenessSchedule::kConstant;
  if (train.mode != TrainMode::kHybrid && !is_constant &&
      origins.contains("train.staleness_schedule")) {
    refuse("train.staleness_schedule", "mode ", word_of(train.mode, kTrainModes),
           " has no staleness bound that could grow, got '",
           word_of(train.staleness_schedule, kStalenessSchedules),
           "'; write mode: hybrid or leave it out");
  }
  constexpr double kDefaultBefore = 0.5;  // stands in the config.yaml of older runs of every mode
  if ((train.mode != TrainMode::kHybrid || is_constant) &&
      train.staleness_factor != TrainConfig().staleness_factor &&
      train.staleness_factor != kDefaultBefore) {
    refuse("train.staleness_factor", "only schedule sqrt of hybrid has a factor, got ",
           train.staleness_factor, "; write staleness_schedule: sqrt or leave it out");
  }
}

void check_async(const JobConfig& config, const ConfigOrigins& origins, const Place& at) {
  if (!config.train.is_async()) return;
  const auto refuse = [&](const std::string& key, const std::string& why) {
    throw Error(ErrorCode::kInvalidConfig, concat(at(key), ": ", why));
  };
  if (config.embedding.store != StoreKind::kPs)
    refuse("train.mode", "async needs embedding.store: ps");
  for (const auto& [key, value] : {std::pair{"checkpoint.every", config.checkpoint.every},
                                   std::pair{"train.eval_every", config.train.eval_every}}) {
    if (value == "never" || !origins.contains(key)) continue;
    refuse(key, "async has a common state of all ranks only at its end; write never");
  }
  for (const auto& [name, table] : config.tables) {
    if (table.capacity_rows == 0 && table.ttl_steps == 0) continue;
    refuse(concat("tables.", name, table.capacity_rows == 0 ? ".ttl_steps" : ".capacity_rows"),
           "not allowed in mode async, where steps have no order to age rows by");
  }
  if (config.train.deterministic) refuse("train.deterministic", "async cannot be deterministic");
}

void check_times(const JobConfig& config, const Place& at) {
  for (const auto& [key, text] :
       {std::pair{"cluster.timeout", config.cluster.timeout},
        std::pair{"cluster.heartbeat", config.cluster.heartbeat},
        std::pair{"checkpoint.max_unsaved", config.checkpoint.max_unsaved}}) {
    if (key == std::string_view("checkpoint.max_unsaved") && text == "never") continue;
    double seconds = 0.0;
    try {
      seconds = parse_duration(text);
    } catch (const Error&) {
      seconds = 0.0;  // reported below, with its place
    }
    if (seconds > 0.0) continue;
    throw Error(
        ErrorCode::kInvalidConfig,
        concat(at(key), ": expected a time above 0, such as '500ms', '30s' or '10min', got '", text,
               "'"));
  }
}

void check_precision(const JobConfig& config, const Place& at) {
  const std::string key = "train.precision";
  if (config.train.precision == Precision::kTf32 && !(config.is_on_gpu() && config.uses_graph())) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at(key),
                       ": tf32 is a GPU's, and this network is computed on the CPU; write fp32 or "
                       "bf16, or device: cuda"));
  }
  if (config.train.precision == Precision::kFp16) check_fp16(config, at(key));
}

/// What a network of a program in Python does not go with yet.
void check_python(const JobConfig& config, const Place& at) {
  if (config.model.type != ModelType::kPython) return;
  const auto refuse = [&](const char* key, const std::string& rule) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at(key), ": a network in Python (model 'python') ", rule));
  };
  const Precision precision = config.train.precision;
  if (config.is_on_gpu()) refuse("device", "is trained on the CPU so far; write cpu");
  if (config.embedding.has_cache()) {
    refuse("embedding.cache.memory", "is trained without a cache of rows so far; write 0");
  }
  if (precision != Precision::kAuto && precision != Precision::kFp32) {
    refuse("train.precision", concat("computes as the program says, got ",
                                     word_of(precision, kPrecisions), "; leave it out"));
  }
  if (config.train.warm_start.is_on() && config.train.warm_start.dense) {
    refuse("train.warm_start.dense",
           "begins with the parameters that the program gives it; write dense: false");
  }
}

void check_warm_start(const WarmStartConfig& warm, const Place& at) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidConfig, concat(at("train.warm_start"), ": ", why));
  };
  if (warm.is_on() && warm.tables.empty() && !warm.dense) {
    refuse("takes neither tables nor the dense network");
  }
  const WarmStartConfig unused;
  if (!warm.is_on() && (warm.tables != unused.tables || warm.dense != unused.dense ||
                        warm.optimizer_state != unused.optimizer_state)) {
    refuse("from is missing: the checkpoint to start with");
  }
}

}  // namespace

void JobConfig::validate(const ConfigOrigins& origins) const {
  const auto at = [&](const std::string& path) {
    const auto origin = origins.find(path);
    return origin == origins.end() ? path : concat(origin->second, ": ", path);
  };
  check_run_dir(run_dir);
  check_interval(*this, train.report_every, at("train.report_every"));
  check_interval(*this, train.eval_every, at("train.eval_every"));
  check_interval(*this, checkpoint.every, at("checkpoint.every"));
  check_modes(*this, origins, at);
  check_precision(*this, at);
  check_times(*this, at);
  if (embedding.store != StoreKind::kPs && embedding.wire != FloatType::kFp32) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("embedding.wire"), ": needs store: ps, got ", name_of(embedding.wire)));
  }
  check_async(*this, origins, at);
  with_place(origins, [&] { embedding.validate(origins); });
  check_device(*this, at);
  check_cache(*this, at);
  check_warm_start(train.warm_start, at);
  check_python(*this, at);
  if (train.eval_every != "never" && !data.has_eval()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.eval_every"), ": there is no evaluation data (data.eval)"));
  }
  check_early_stopping(*this, at);
  check_metrics_at(*this, at);
  check_slices(*this, at);
  check_expect(*this, at);
  data::validate(data, origins);
  with_place(origins, [&] { check_losses(*this); });
  with_place(origins, [&] { model.validate(); });
  with_place(origins, [&] { dense_optimizer.validate(); });
  for (const auto& [name, table] : tables) {
    with_place(origins, [&] {
      const std::string path = "tables." + name;
      name == "default" ? table.validate(path) : table.validate(path, tables.at("default"));
    });
  }
}

}  // namespace satrap::job
