#include "satrap/job/job_config.h"

#include <filesystem>
#include <functional>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/job/config_place.h"

namespace satrap::job {

void EarlyStoppingConfig::visit(ConfigVisitor& v) {
  v.field("metric", metric,
          "Metric of the evaluation data, of several labels of the first; auc and gauc (with "
          "data.group_by) are to rise, the others to fall.",
          {.one_of = {"auc", "gauc", "logloss", "ne"}});
  v.field(
      "patience", patience,
      "End training after this many evaluations (train.eval_every) in a row without a better "
      "value. Each better one is saved as a checkpoint, and the best checkpoint is kept besides "
      "the newest checkpoint.keep. 0: never.",
      {.min = 0});
  v.field("min_delta", min_delta,
          "A value is better only if it differs from the best by more than this.", {.min = 0});
}

void TrainConfig::visit(ConfigVisitor& v) {
  v.field("mode", mode,
          "sync: every lookup sees all earlier updates. hybrid: embeddings are trained "
          "asynchronously, within the staleness bound; the dense network as in sync. async: nobody "
          "waits for anybody, the dense parameters are on the shards too; for comparison.",
          {.one_of = {"sync", "hybrid", "async"}});
  v.field(
      "staleness", staleness,
      "Bound of hybrid: the lookups of step t see at least all updates of steps <= t-1-staleness.",
      {.min = 0, .max = 1024});
  v.field(
      "deterministic", deterministic,
      "The same command gives the same bits, also after a crash and --resume: the lookups of step "
      "t see exactly the updates of steps <= t-1-staleness.");
  v.field(
      "precision", precision,
      "Of the dense network's matrix products; weights, sums and optimizer are fp32. bf16 rounds "
      "their operands and results, as autocast does. auto: the faster one on this CPU "
      "(`satrap doctor` says which).",
      {.one_of = {"fp32", "bf16", "auto"}});
  v.field("epochs", epochs, "Passes over the training data.", {.min = 1});
  v.field("max_steps", max_steps, "Stop after this many steps; 0: at the end of the data.",
          {.min = 0});
  v.field("threads", threads, "Threads that compute; 0: one per CPU. Results do not depend on it.",
          {.min = 0, .max = 1024});
  v.field("prefetch_batches", prefetch_batches, "Batches read and planned ahead of the lookups.",
          {.min = 1, .max = 1024});
  v.field("max_nonfinite_steps", max_nonfinite_steps,
          "End the run when this many steps had a loss or gradient that is not finite; until then "
          "such steps update nothing.",
          {.min = 1});
  v.field("metric_window", metric_window,
          "Examples of the window over which the training metrics are taken.", {.min = 1});
  v.field("report_every", report_every,
          "How often progress is reported: '100 steps', '10s', '1min', never.");
  v.field("eval_every", eval_every,
          "How often the evaluation data is scored during training, besides at the end.");
  v.field("tensorboard", tensorboard,
          "Write every report and evaluation for TensorBoard too, into tensorboard/ of run_dir.");
  v.section("early_stopping", early_stopping, "End training once evaluation stops getting better.");
  v.section("warm_start", warm_start, "Start with what another run has learned.");
}

void WarmStartConfig::visit(ConfigVisitor& v) {
  v.field("from", from,
          "A checkpoint, or a run directory: its newest. The new run begins at step 0, with the "
          "first row of its data. Empty: nothing is taken over.");
  v.field("tables", tables,
          "Tables whose rows are taken: names, or globs such as user_*. Other tables start anew.");
  v.field("dense", dense, "Take the dense network too; its layers must have the same shapes.");
  v.field("optimizer_state", optimizer_state,
          "keep: rows and network go on with their optimizer's state, which must be of the same "
          "optimizer. reset: weights alone are taken.",
          {.one_of = {"keep", "reset"}});
}

void EmbeddingConfig::visit(ConfigVisitor& v) {
  v.field(
      "store", store,
      "Where the rows live. embedded: in the trainer's process. ps: on parameter-server shards, "
      "which satrap-run --ps starts; needed for several ranks.",
      {.one_of = {"embedded", "ps"}});
  v.field("wire", wire,
          "How weights and gradients travel between ranks and shards. bf16 and fp16 halve the "
          "bytes and round to nearest; what is stored stays as it is.",
          {.one_of = {"fp32", "bf16", "fp16"}});
}

void ClusterOptions::visit(ConfigVisitor& v) {
  v.field("timeout", timeout,
          "How long a rank waits for other ranks or shards before it gives up with an error.");
  v.field("heartbeat", heartbeat,
          "A process from which nothing was heard for this long counts as hung.");
}

std::int64_t ClusterOptions::timeout_ms() const {
  return static_cast<std::int64_t>(1e3 * parse_duration(timeout));
}
std::int64_t ClusterOptions::heartbeat_ms() const {
  return static_cast<std::int64_t>(1e3 * parse_duration(heartbeat));
}

void CheckpointConfig::visit(ConfigVisitor& v) {
  v.field("every", every,
          "How often a checkpoint is written, besides at the end: '1000 steps', '10min', never.");
  v.field("keep", keep, "Number of checkpoints kept.", {.min = 1});
}

void JobConfig::visit(ConfigVisitor& v) {
  v.field("run_dir", run_dir, "Directory for everything the run writes.", {.required = true});
  v.field("device", device, "auto takes the best this build and machine have: the CPU.",
          {.one_of = {"auto", "cpu"}});
  v.field("seed", seed, "Seed of initial values and shuffling.", {.min = 0});
  v.section("data", data, "Training and evaluation data.");
  v.named("tables", tables, "Embedding tables; `default` holds for those not named.");
  v.named("features", features, "Categorical features; `default` holds for those not named.");
  v.section("model", model, "The dense network.");
  v.section("dense_optimizer", dense_optimizer, "Optimizer of the dense network.");
  v.section("embedding", embedding, "The embedding rows.");
  v.section("train", train, "How to train.");
  v.section("checkpoint", checkpoint, "Checkpoints.");
  v.section("cluster", cluster, "Several processes.");
}

namespace {

using Place = std::function<std::string(const std::string& key)>;

void check_early_stopping(const JobConfig& config, const Place& at) {
  const std::string key = "train.early_stopping";
  const auto fail = [&](const std::string& field, const std::string& rule) {
    throw Error(ErrorCode::kInvalidConfig, concat(at(key + field), ": ", rule));
  };
  const EarlyStoppingConfig& early = config.train.early_stopping;
  if (!early.is_on()) {
    const EarlyStoppingConfig unset;
    if (early.metric != unset.metric) fail(".metric", "has a meaning only with patience");
    if (early.min_delta > unset.min_delta) fail(".min_delta", "has a meaning only with patience");
    return;
  }
  if (config.train.is_async()) {
    fail(".patience", "async has a state of all ranks to evaluate only at its end");
  }
  if (!config.data.has_eval()) fail(".patience", "there is no evaluation data (data.eval)");
  if (early.metric == "gauc" && config.data.group_by.empty())
    fail(".metric", "gauc needs data.group_by");
  if (config.train.eval_every == "never") {
    fail(".patience", "counts evaluations during training; set train.eval_every");
  }
}

}  // namespace

void JobConfig::validate(const ConfigOrigins& origins) const {
  const auto at = [&](const std::string& path) {
    const auto origin = origins.find(path);
    return origin == origins.end() ? path : concat(origin->second, ": ", path);
  };
  Interval::parse(train.report_every, at("train.report_every"));
  Interval::parse(train.eval_every, at("train.eval_every"));
  Interval::parse(checkpoint.every, at("checkpoint.every"));
  if (train.mode == "sync" && origins.contains("train.staleness") && train.staleness != 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.staleness"), ": mode sync has no staleness, got ", train.staleness,
                       "; write mode: hybrid or leave it out"));
  }
  for (const auto& [key, text] : {std::pair{"cluster.timeout", cluster.timeout},
                                  std::pair{"cluster.heartbeat", cluster.heartbeat}}) {
    double seconds = 0.0;
    try {
      seconds = parse_duration(text);
    } catch (const Error&) {
      seconds = 0.0;  // said below, with its place
    }
    if (!(seconds > 0.0)) {
      throw Error(
          ErrorCode::kInvalidConfig,
          concat(at(key), ": expected a time above 0, such as '500ms', '30s' or '10min', got '",
                 text, "'"));
    }
  }
  if (embedding.store != "ps" && embedding.wire != "fp32") {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("embedding.wire"), ": only with store: ps, got ", embedding.wire));
  }
  if (train.is_async() && embedding.store != "ps") {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.mode"), ": async needs embedding.store: ps"));
  }
  if (train.is_async()) {
    const auto refuse = [&](const std::string& key, const std::string& value) {
      if (value == "never" || !origins.contains(key)) return;
      throw Error(ErrorCode::kInvalidConfig,
                  concat(at(key), ": async has a state of all ranks only at its end; write never"));
    };
    refuse("checkpoint.every", checkpoint.every);
    refuse("train.eval_every", train.eval_every);
  }
  for (const auto& [name, table] : tables) {
    if (!train.is_async() || (table.capacity_rows == 0 && table.ttl_steps == 0)) continue;
    const std::string key =
        concat("tables.", name, table.capacity_rows == 0 ? ".ttl_steps" : ".capacity_rows");
    throw Error(
        ErrorCode::kInvalidConfig,
        concat(at(key), ": not in mode async, where steps have no order by which rows age"));
  }
  if (train.is_async() && train.deterministic) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.deterministic"), ": async cannot be deterministic"));
  }
  const WarmStartConfig& warm = train.warm_start;
  if (warm.is_on() && warm.tables.empty() && !warm.dense) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.warm_start"), ": takes neither tables nor the dense network"));
  }
  const WarmStartConfig unused;
  if (!warm.is_on() && (warm.tables != unused.tables || warm.dense != unused.dense ||
                        warm.optimizer_state != unused.optimizer_state)) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.warm_start"), ": from is missing: the checkpoint to start with"));
  }
  if (train.eval_every != "never" && !data.has_eval()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.eval_every"), ": there is no evaluation data (data.eval)"));
  }
  check_early_stopping(*this, at);
  data::validate(data, origins);
  with_place(origins, [&] { model.validate(); });
  with_place(origins, [&] { dense_optimizer.validate(); });
  for (const auto& [name, table] : tables) {
    with_place(origins, [&] {
      const std::string path = "tables." + name;
      name == "default" ? table.validate(path) : table.validate(path, tables.at("default"));
    });
  }
}

JobConfig read_job(const std::string& path,
                   const std::vector<std::string>& overrides,
                   ConfigOrigins& origins) {
  JobConfig config;
  origins = load_config(config, path, overrides);
  data::inline_schema_file(config.data, std::filesystem::path(path).parent_path().string());
  config.validate(origins);
  if (config.train.mode == "sync") config.train.staleness = 0;  // the default was for hybrid
  return config;
}

}  // namespace satrap::job
