#include "satrap/job/read_job.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "satrap/core/error.h"
#include "satrap/job/config_paths.h"
#include "satrap/job/label_loss.h"

namespace satrap::job {
namespace {

/// The job on this device, which `auto` may mean. Throws what is wrong with that.
JobConfig on_device(JobDevice device,
                    const JobConfig& written,
                    const ConfigOrigins& origins,
                    const ClusterConfig& cluster) {
  JobConfig config = written;
  config.device = device;
  config.embedding.cache.is_on_gpu = config.is_on_gpu();
  std::string& memory = config.embedding.cache.memory;
  if (config.is_on_gpu() && !origins.contains("embedding.cache.memory")) {
    memory = config.why_no_cache().empty() ? "auto" : "0";
  }
  // With the keys divided among ranks on several nodes they send each other what they save.
  if (memory == "auto" && cluster.has_several_nodes()) memory = "0";
  config.validate(origins);
  return config;
}

/// Layers from which on a GPU computes a network whose inputs and gradients cross over in each
/// step. Counted, not measured, for 429 inputs and a batch of 2048: two layers of 128 take 16 cores
/// of 100 GFLOP/s 0.55 ms, two of 256 1.35 ms; 80 launches of 4 us and 7 MB at 20 GB/s take 0.67
/// ms.
constexpr std::int64_t kWidthForGpu = 256;

/// Why `auto` leaves a GPU alone that could run the job; "" if it does not. The width of a user's
/// module is not known.
std::string why_not_worth_it(const JobConfig& on_gpu) {
  const ModelConfig& model = on_gpu.model;
  if (on_gpu.embedding.has_cache() || model.type == ModelType::kTorchScript ||
      model.widest_layer() >= kWidthForGpu) {
    return "";
  }
  const std::string why = on_gpu.why_no_cache();
  return concat("its rows stay ",
                on_gpu.embedding.store == StoreKind::kPs ? "on the shards" : "in the host's tables",
                " (", why.empty() ? "embedding.cache.memory is 0" : why,
                "), and no layer of model '", word_of(model.type, kModelTypes), "' has ",
                kWidthForGpu,
                " outputs, from which on a GPU computes the network alone; write device: cuda to "
                "have it do so");
}

/// Why the job cannot run on this device; nullopt if it can.
std::optional<Error> problem_on(JobDevice device,
                                const JobConfig& config,
                                const ConfigOrigins& origins,
                                const ClusterConfig& cluster) {
  try {
    on_device(device, config, origins, cluster);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// A model with one weight per id needs no dim in the file.
void imply_dim_one(JobConfig& config, const ConfigOrigins& origins) {
  if (!needs_dim_one(config.model.type)) return;
  for (auto& [name, table] : config.tables) {
    const std::string own = concat("tables.", name, ".dim");
    const std::string key = origins.contains(own) ? own : "tables.default.dim";
    const auto origin = origins.find(key);
    if (origin == origins.end()) {
      table.dim = 1;
    } else if (table.dim != 1) {
      throw Error(
          ErrorCode::kInvalidConfig,
          concat(origin->second, ": ", key, ": model '", word_of(config.model.type, kModelTypes),
                 "' has one weight per id, got ", table.dim, "; write 1, or leave it out (",
                 "on the command line: ~", key, ")"));
    }
  }
}

/// A label that is not 0 or 1 has no AUC.
void imply_metric(JobConfig& config, const ConfigOrigins& origins) {
  if (origins.contains("train.early_stopping.metric")) return;
  config.train.early_stopping.metric = default_metric(first_loss(config));
}

/// data.eval: none. What needs evaluations goes with them.
void leave_out_evaluation(JobConfig& config) {
  config.data.eval.path.clear();
  config.data.eval.fraction = 0.0;
  config.train.eval_every = TrainConfig().eval_every;
  config.train.early_stopping = {};
}

/// Whether a run has written this file, beside its checkpoints or in one: with every key, also
/// those that nobody writes by hand.
bool is_of_run(const std::filesystem::path& path, const ConfigOrigins& written) {
  std::error_code unknown;
  return path.filename() == "config.yaml" && written.contains("data.schema.trim") &&
         written.contains("checkpoint.max_failures") &&
         (std::filesystem::exists(path.parent_path() / "checkpoints", unknown) ||
          std::filesystem::exists(path.parent_path() / "manifest.json", unknown));
}

}  // namespace

JobConfig read_job(const std::string& path,
                   const std::vector<std::string>& overrides,
                   ConfigOrigins& origins,
                   const ClusterConfig& cluster) {
  JobConfig config;
  origins = load_config(config, path, overrides);
  if (config.data.eval.path == std::vector<std::string>{"none"}) leave_out_evaluation(config);
  if (is_of_run(path, origins)) keep_past_defaults(config, origins);
  resolve_paths(config, path, origins);
  data::inline_schema_file(config.data);
  imply_dim_one(config, origins);
  imply_metric(config, origins);
  if (config.device != JobDevice::kAuto) {
    config = on_device(config.device, config, origins, cluster);
  } else if (const auto problem = problem_on(JobDevice::kCpu, config, origins, cluster)) {
    if (problem_on(JobDevice::kCuda, config, origins, cluster)) throw Error(*problem);
  }
  // These defaults were for hybrid.
  if (config.train.mode == TrainMode::kSync) config.train.staleness = 0;
  if (config.train.mode != TrainMode::kHybrid) {
    config.train.staleness_schedule = StalenessSchedule::kConstant;
  }
  // Its lookups use the bound up, though nobody waits for them.
  if (config.train.mode == TrainMode::kHybrid && config.train.deterministic &&
      !origins.contains("train.staleness")) {
    config.train.staleness = 1;
  }
  return config;
}

void choose_device(JobConfig& config,
                   const ConfigOrigins& origins,
                   bool has_gpu,
                   const ClusterConfig& cluster) {
  if (config.device != JobDevice::kAuto) return;
  std::string why_not;
  if (has_gpu) {
    try {
      const JobConfig on_gpu = on_device(JobDevice::kCuda, config, origins, cluster);
      why_not = why_not_worth_it(on_gpu);
      if (why_not.empty()) {
        config = on_gpu;
        return;
      }
    } catch (const Error& error) {
      why_not = error.what();
    }
  }
  config = on_device(JobDevice::kCpu, config, origins, cluster);
  config.why_not_on_gpu = why_not;
}

}  // namespace satrap::job
