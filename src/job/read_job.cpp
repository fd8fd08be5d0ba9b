#include "satrap/job/read_job.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "satrap/core/error.h"
#include "satrap/job/config_paths.h"

namespace satrap::job {
namespace {

/// The job on this device, which `auto` may mean. Throws what is wrong with that.
JobConfig on_device(const std::string& device,
                    const JobConfig& written,
                    const ConfigOrigins& origins) {
  JobConfig config = written;
  config.device = device;
  config.embedding.cache.is_on_gpu = config.is_on_gpu();
  if (config.is_on_gpu() && !origins.contains("embedding.cache.memory")) {
    config.embedding.cache.memory = "auto";
  }
  config.validate(origins);
  return config;
}

/// Why the job cannot run on this device; nullopt if it can.
std::optional<Error> problem_on(const std::string& device,
                                const JobConfig& config,
                                const ConfigOrigins& origins) {
  try {
    on_device(device, config, origins);
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
      throw Error(ErrorCode::kInvalidConfig,
                  concat(origin->second, ": ", key, ": model '", config.model.type,
                         "' has one weight per id, got ", table.dim, "; write 1, or leave it out (",
                         "on the command line: ~", key, ")"));
    }
  }
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
                   ConfigOrigins& origins) {
  JobConfig config;
  origins = load_config(config, path, overrides);
  if (config.device == "gpu") config.device = "cuda";
  if (config.data.eval.path == std::vector<std::string>{"none"}) leave_out_evaluation(config);
  if (is_of_run(path, origins)) keep_past_defaults(config, origins);
  resolve_paths(config, path, origins);
  data::inline_schema_file(config.data);
  imply_dim_one(config, origins);
  if (config.device != "auto") {
    config = on_device(config.device, config, origins);
  } else if (const auto problem = problem_on("cpu", config, origins)) {
    if (problem_on("cuda", config, origins)) throw Error(*problem);
  }
  // These defaults were for hybrid.
  if (config.train.mode == "sync") config.train.staleness = 0;
  if (config.train.mode != "hybrid") config.train.staleness_schedule = "constant";
  // Its lookups use the bound up, though nobody waits for them.
  if (config.train.mode == "hybrid" && config.train.deterministic &&
      !origins.contains("train.staleness")) {
    config.train.staleness = 1;
  }
  return config;
}

void choose_device(JobConfig& config, const ConfigOrigins& origins, bool has_gpu) {
  if (config.device != "auto") return;
  const std::optional<Error> problem = has_gpu ? problem_on("cuda", config, origins) : std::nullopt;
  config = on_device(has_gpu && !problem ? "cuda" : "cpu", config, origins);
  if (problem) config.why_not_on_gpu = problem->what();
}

}  // namespace satrap::job
