#include "satrap/job/job_config.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/data/remote_folder.h"
#include "satrap/job/config_place.h"

namespace satrap::job {

void EarlyStoppingConfig::visit(ConfigVisitor& v) {
  v.field("metric", metric,
          "Metric of the evaluation data, for several labels of the first. auc and gauc (with "
          "data.group_by) should rise, the others fall.",
          {.one_of = {"auc", "gauc", "logloss", "ne"}});
  v.field(
      "patience", patience,
      "End training after this many consecutive evaluations (train.eval_every) without a better "
      "value. A checkpoint is written at each better value, and the best one is kept besides "
      "the newest checkpoint.keep. 0: never.",
      {.min = 0});
  v.field("min_delta", min_delta,
          "A value is better only if it differs from the best by more than this.", {.min = 0});
}

void ExpectConfig::visit(ConfigVisitor& v) {
  v.field(
      "auc", auc,
      "[low, high]: a finished run whose last evaluation has an AUC outside of this, for several "
      "labels of the first, ends with an error and exit status 1, once everything is written. "
      "For a benchmark whose result is known. Empty: any.",
      {.min = 0, .max = 1});
  v.field("min_examples", min_examples,
          "Expect it only of a run that has trained on this many examples, so that a part of the "
          "data may be tried.",
          {.min = 0});
}

void TrainConfig::visit(ConfigVisitor& v) {
  v.field("mode", mode,
          "sync: every lookup sees all earlier updates. hybrid: embeddings are trained "
          "asynchronously within the staleness bound, the dense network as in sync. async: no rank "
          "waits for another, and the dense parameters are on the shards too; for comparison.",
          {.one_of = {"sync", "hybrid", "async"}});
  v.field(
      "staleness", staleness,
      "Bound of hybrid: the lookups of step t see at least all updates of steps <= t-1-staleness; "
      "deterministic training sees exactly those up to the bound, so that its default is 1. sync "
      "has 0.",
      {.min = 0, .max = 1024});
  v.field(
      "staleness_schedule", staleness_schedule,
      "constant: the bound is `staleness` from the first step. sqrt: that of step t is "
      "min(staleness, floor(staleness_factor * sqrt(t))), so that the first steps, which change "
      "rows most, read newer ones; sync and async have no schedule.",
      {.one_of = {"constant", "sqrt"}});
  v.field("staleness_factor", staleness_factor, "Factor of staleness_schedule sqrt.",
          {.min = 0.001, .max = 1});
  v.field(
      "deterministic", deterministic,
      "The same command gives the same bits, also after a crash and --resume: the lookups of step "
      "t see exactly the updates of steps <= t-1-bound.");
  v.field(
      "precision", precision,
      "Precision of the dense network's matrix products. bf16 rounds their operands and, where "
      "libtorch computes them, their results, as autocast does: on a CPU with AMX or without "
      "AVX-512 BF16, and in model.engine graph. So does fp16, in model.engine graph, which is a "
      "GPU's: the loss is multiplied by a scale, so that small gradients are not "
      "lost. The scale starts at 65536; a step whose gradient overflows updates nothing and halves "
      "it, 2000 finite steps in a row double it, up to 2^24. Steps that it made skip are counted "
      "apart from max_nonfinite_steps, unless it was 1. tf32, on a GPU alone, takes the 10 leading "
      "bits of their operands. Weights, sums and optimizer are fp32. auto: the faster of fp32 and "
      "bf16 on this CPU (`satrap doctor` says which), fp32 where libtorch computes the network.",
      {.one_of = {"fp32", "bf16", "fp16", "tf32", "auto"}});
  v.field(
      "start_from_average", start_from_average,
      "A new dense network begins with the mean label of the first batch as its prediction: the "
      "bias of each output starts at the log-odds. Not for type torchscript.");
  v.field("epochs", epochs, "Passes over the training data.", {.min = 1});
  v.field("max_steps", max_steps, "Stop after this many steps; 0: at the end of the data.",
          {.min = 0});
  v.field("threads", threads, "Compute threads. 0: one per CPU. Results do not depend on it.",
          {.min = 0, .max = 1024});
  v.field("prefetch_batches", prefetch_batches, "Batches read and planned ahead of the lookups.",
          {.min = 1, .max = 1024});
  v.field(
      "max_nonfinite_steps", max_nonfinite_steps,
      "End the run after this many steps with a loss or gradient that is not finite. Such steps "
      "update nothing.",
      {.min = 1});
  v.field("metric_window", metric_window,
          "Number of latest examples over which training metrics are computed.", {.min = 1});
  v.field("report_every", report_every,
          "How often progress is reported: '100 steps', '1 epoch', '10s', '1min', never. With a "
          "time, metrics.jsonl also has about 50 points over the run, for its curves.");
  v.field("eval_every", eval_every,
          "How often the evaluation data is scored during training, besides at the end: '1000 "
          "steps', '1 epoch' (after its last step), '10min', never.");
  v.field("tensorboard", tensorboard,
          "Also write every report and evaluation for TensorBoard, to tensorboard/ in run_dir.");
  v.section("early_stopping", early_stopping, "End training once evaluation stops improving.");
  v.section("expect", expect, "What the result of the run must be.");
  v.section("warm_start", warm_start, "Start with what another run has learned.");
}

void WarmStartConfig::visit(ConfigVisitor& v) {
  v.field("from", from,
          "A checkpoint, or a run directory for its newest. The new run begins at step 0, with the "
          "first row of its data. Empty: no warm start.");
  v.field("tables", tables,
          "Tables whose rows are taken: names, or globs such as user_*. Other tables start empty.");
  v.field("dense", dense, "Take the dense network too; its layers must have the same shapes.");
  v.field("optimizer_state", optimizer_state,
          "keep: rows and network keep their optimizer's state; the optimizer must be the same. "
          "reset: only weights are taken.",
          {.one_of = {"keep", "reset"}});
}

void ClusterOptions::visit(ConfigVisitor& v) {
  v.field("timeout", timeout,
          "How long a rank waits for other ranks or shards before it gives up with an error.");
  v.field("heartbeat", heartbeat, "A process that sends nothing for this long counts as hung.");
}

std::int64_t ClusterOptions::timeout_ms() const {
  return static_cast<std::int64_t>(1e3 * parse_duration(timeout));
}
std::int64_t ClusterOptions::heartbeat_ms() const {
  return static_cast<std::int64_t>(1e3 * parse_duration(heartbeat));
}

void CheckpointConfig::visit(ConfigVisitor& v) {
  v.field("every", every,
          "How often a checkpoint is written, besides at the end: '1000 steps', '1 epoch', "
          "'10min', never.");
  v.field("keep", keep, "Number of checkpoints kept.", {.min = 1});
  v.field("max_failures", max_failures,
          "The job ends when this many checkpoints in a row cannot be written; until then each is "
          "a warning, and the next one is tried when it is due.",
          {.min = 1});
  v.field("max_unsaved", max_unsaved,
          "The job also ends at a failure if none could be written for this long: '2h', never.");
}

std::optional<double> CheckpointConfig::max_unsaved_seconds() const {
  return max_unsaved == "never" ? std::nullopt : std::optional(parse_duration(max_unsaved));
}

void JobConfig::visit(ConfigVisitor& v) {
  v.field("run_dir", run_dir,
          "Directory for everything the run writes, or its URL in a store: s3://bucket/prefix, "
          "hdfs://namenode:9870/path; the run then keeps copies of what it writes in the folder "
          "SATRAP_SCRATCH of the environment. Empty: runs/ and the name of the file, without "
          ".yaml; if that holds a run, with -2, -3 and so on, unless a launcher or a scheduler "
          "has started the job.");
  v.field(
      "folder", folder,
      "Where the relative paths of this file begin. Empty: the folder of the file; those of the "
      "command line begin in the working directory.");
  v.field("device", device,
          "Where rows are trained. cpu. cuda: in a cache in the memory of a GPU, one for each rank "
          "of a node; embedding.cache.memory is 50% of what is free there if nothing else is "
          "written; the dense network is computed there too, unless model.engine says otherwise. "
          "auto: cuda if there is a GPU and the job can run on it, else cpu; a job that has a GPU "
          "and cannot use it says why when it starts. gpu: as cuda.",
          {.one_of = {"auto", "cpu", "cuda", "gpu"}});
  v.field("seed", seed, "Seed of initial values and shuffling.", {.min = 0});
  v.section("data", data, "Training and evaluation data.");
  v.named("tables", tables, "Embedding tables; `default` applies to those not named.");
  v.named("features", features, "Categorical features; `default` applies to those not named.");
  v.section("model", model, "The dense network.");
  v.section("dense_optimizer", dense_optimizer, "Optimizer of the dense network.");
  v.section("embedding", embedding, "The embedding rows.");
  v.section("train", train, "How to train.");
  v.section("checkpoint", checkpoint, "Checkpoints.");
  v.section("cluster", cluster, "Several processes.");
}

namespace {

using Place = std::function<std::string(const std::string& key)>;

/// What else rules out a cache of rows, which its own section cannot know.
void check_cache(const JobConfig& config, const Place& at) {
  if (!config.embedding.has_cache()) {
    if (!config.is_on_gpu()) return;
    throw Error(ErrorCode::kInvalidConfig, concat(at("embedding.cache.memory"),
                                                  ": device cuda trains rows in a cache; leave "
                                                  "it out, or write more than 0"));
  }
  const auto refuse = [&](const std::string& why) {
    if (config.is_on_gpu()) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(at("device"), ": cuda needs a cache (embedding.cache.memory): ", why,
                         "write cpu"));
    }
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("embedding.cache.memory"), ": ", why, "write 0"));
  };
  if (config.train.is_async()) {
    refuse("async has no cache: its shards update each row on arrival of a gradient; ");
  }
  for (const auto& [name, table] : config.tables) {
    if (table.capacity_rows == 0 && table.ttl_steps == 0 && table.admit_after <= 1) continue;
    refuse(concat("table '", name,
                  "' has capacity_rows, ttl_steps or admit_after, and would take "
                  "rows in a cache for unused; remove them, or "));
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
    if (early.metric != unset.metric) fail(".metric", "has no effect without patience");
    if (early.min_delta > unset.min_delta) fail(".min_delta", "has no effect without patience");
    return;
  }
  if (config.train.is_async()) {
    fail(".patience", "async has a common state of all ranks to evaluate only at its end");
  }
  if (!config.data.has_eval()) fail(".patience", "there is no evaluation data (data.eval)");
  if (early.metric == "gauc" && config.data.group_by.empty())
    fail(".metric", "gauc needs data.group_by");
  if (config.train.eval_every == "never") {
    fail(".patience", "counts evaluations during training; set train.eval_every");
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
  if (config.model.type == "torchscript") {
    refuse("does not go with model 'torchscript', which computes as its module says; write fp32");
  }
  if (!config.uses_graph()) {
    refuse(
        "is for a network that libtorch computes, and this one's passes are its own; write fp32 or "
        "bf16, or model.engine: graph");
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
  if (train.mode == "sync" && origins.contains("train.staleness") && train.staleness != 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.staleness"), ": mode sync has no staleness, got ", train.staleness,
                       "; write mode: hybrid or leave it out"));
  }
  if (train.mode != "hybrid" && train.staleness_schedule != "constant" &&
      origins.contains("train.staleness_schedule")) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.staleness_schedule"), ": mode ", train.mode,
                       " has no staleness bound that could grow, got '", train.staleness_schedule,
                       "'; write mode: hybrid or leave it out"));
  }
  if (train.precision == "tf32" && !(is_on_gpu() && uses_graph())) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.precision"),
                       ": tf32 is a GPU's, and this network is computed on the CPU; write fp32 or "
                       "bf16, or device: cuda"));
  }
  if (train.precision == "fp16") check_fp16(*this, at("train.precision"));
  constexpr double kDefaultBefore = 0.5;  // stands in the config.yaml of older runs of every mode
  if ((train.mode != "hybrid" || train.staleness_schedule == "constant") &&
      train.staleness_factor != TrainConfig().staleness_factor &&
      train.staleness_factor != kDefaultBefore) {
    throw Error(
        ErrorCode::kInvalidConfig,
        concat(at("train.staleness_factor"), ": only schedule sqrt of hybrid has a factor, got ",
               train.staleness_factor, "; write staleness_schedule: sqrt or leave it out"));
  }
  for (const auto& [key, text] : {std::pair{"cluster.timeout", cluster.timeout},
                                  std::pair{"cluster.heartbeat", cluster.heartbeat},
                                  std::pair{"checkpoint.max_unsaved", checkpoint.max_unsaved}}) {
    if (key == std::string_view("checkpoint.max_unsaved") && text == "never") continue;
    double seconds = 0.0;
    try {
      seconds = parse_duration(text);
    } catch (const Error&) {
      seconds = 0.0;  // reported below, with its place
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
                concat(at("embedding.wire"), ": needs store: ps, got ", embedding.wire));
  }
  if (train.is_async() && embedding.store != "ps") {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.mode"), ": async needs embedding.store: ps"));
  }
  if (train.is_async()) {
    const auto refuse = [&](const std::string& key, const std::string& value) {
      if (value == "never" || !origins.contains(key)) return;
      throw Error(
          ErrorCode::kInvalidConfig,
          concat(at(key), ": async has a common state of all ranks only at its end; write never"));
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
        concat(at(key), ": not allowed in mode async, where steps have no order to age rows by"));
  }
  if (train.is_async() && train.deterministic) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.deterministic"), ": async cannot be deterministic"));
  }
  with_place(origins, [&] { embedding.validate(origins); });
  check_cache(*this, at);
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
  check_expect(*this, at);
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

}  // namespace satrap::job
