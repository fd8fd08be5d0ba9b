#include "satrap/trainer/config.h"

#include <filesystem>

#include "satrap/core/error.h"
#include "src/trainer/model.h"

namespace satrap::trainer {
namespace {

/// Puts the place of a value in front of a message that begins with its path ("model.top: ...").
template <class Body>
void with_place(const ConfigOrigins& origins, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string message = error.what();
    const auto origin = origins.find(message.substr(0, message.find(':')));
    if (origin == origins.end()) throw;
    throw Error(error.code(), concat(origin->second, ": ", message));
  }
}

}  // namespace

void TrainConfig::visit(ConfigVisitor& v) {
  v.field("mode", mode,
          "sync: every lookup sees all earlier updates. hybrid: embeddings are trained "
          "asynchronously, within the staleness bound; the dense network as in sync.",
          {.one_of = {"sync", "hybrid"}});
  v.field(
      "staleness", staleness,
      "Bound of hybrid: the lookups of step t see at least all updates of steps <= t-1-staleness.",
      {.min = 0, .max = 1024});
  v.field(
      "deterministic", deterministic,
      "The same command gives the same bits, also after a crash and --resume: the lookups of step "
      "t see exactly the updates of steps <= t-1-staleness.");
  v.field("precision", precision,
          "Of the dense network's matrix products; weights and optimizer are fp32. auto: fp32 on "
          "CPUs.",
          {.one_of = {"auto", "fp32", "bf16"}});
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
  v.section("train", train, "How to train.");
  v.section("checkpoint", checkpoint, "Checkpoints.");
}

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
  if (train.eval_every != "never" && !data.has_eval()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(at("train.eval_every"), ": there is no evaluation data (data.eval)"));
  }
  data::validate(data, origins);
  with_place(origins, [&] { model.validate(); });
  with_place(origins, [&] { dense_optimizer.validate(); });
  for (const auto& [name, table] : tables) {
    with_place(origins, [&] {
      const std::string path = "tables." + name;
      name == "default" ? table.validate(path) : table.validate(path, tables.at("default"));
    });
  }
  with_place(origins, [&] { check_model(*this); });
}

JobConfig load_job(const std::string& path, const std::vector<std::string>& overrides) {
  JobConfig config;
  const ConfigOrigins origins = load_config(config, path, overrides);
  data::inline_schema_file(config.data, std::filesystem::path(path).parent_path().string());
  config.validate(origins);
  return config;
}

}  // namespace satrap::trainer
