#include "satrap/job/config_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "satrap/core/file.h"

namespace satrap::job {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const std::string& file) {
  std::error_code unknown;
  const bool is_pipe = file.starts_with("/dev/") || file.starts_with("/proc/");
  if (file.empty() || is_pipe) return fs::current_path(unknown);
  return fs::absolute(file, unknown).parent_path();
}

std::string joined(const fs::path& folder, const std::string& path) {
  if (!is_relative_path(path)) return path;
  const fs::path whole = folder / path;
  const bool climbs = std::ranges::find(whole, "..") != whole.end();
  if (!climbs) return whole.lexically_normal().string();
  std::error_code unknown;  // a folder that is not there, or not to be seen: reading reports it
  const fs::path parent = fs::weakly_canonical(whole.parent_path(), unknown);
  return unknown ? whole.string() : (parent / whole.filename()).string();
}

bool is_override(const ConfigOrigins& origins, const std::string& key) {
  const auto origin = origins.find(key);
  return origin != origins.end() && origin->second.starts_with("command line");
}

/// Calls use(key, path) for every path of a job.
template <class Use>
void for_each_path(JobConfig& config, const Use& use) {
  use("run_dir", config.run_dir);
  if (config.data.schema_name != "criteo") use("data.schema", config.data.schema_name);
  for (std::string& path : config.data.train.path) use("data.train.path", path);
  for (std::string& path : config.data.eval.path) use("data.eval.path", path);
  use("data.cache.folder", config.data.cache.folder);
  use("model.path", config.model.path);
  use("train.warm_start.from", config.train.warm_start.from);
}

}  // namespace

void resolve_paths(JobConfig& config, const std::string& file, const ConfigOrigins& origins) {
  const fs::path of_command_line = folder_of("");
  const fs::path of_file = is_override(origins, "folder") ? of_command_line : folder_of(file);
  config.folder = (of_file / config.folder).lexically_normal().string();
  if (config.folder.ends_with('/') && config.folder.size() > 1) config.folder.pop_back();
  const bool is_default = config.run_dir.empty();
  if (is_default) config.run_dir = "runs/" + fs::path(file).stem().string();
  for_each_path(config, [&](const std::string& key, std::string& path) {
    path = joined(is_override(origins, key) ? of_command_line : fs::path(config.folder), path);
  });
  config.default_run_dir = is_default ? config.run_dir : "";
}

JobConfig with_relative_paths(JobConfig config) {
  for_each_path(config, [&](const std::string&, std::string& path) {
    const std::string relative = without_folder(path, config.folder);
    if (joined(config.folder, relative) == path) path = relative;  // it means the same
  });
  return config;
}

void keep_past_defaults(JobConfig& config, const ConfigOrigins& written) {
  if (!written.contains("train.staleness_schedule")) {
    config.train.staleness_schedule = StalenessSchedule::kConstant;
  }
  if (!written.contains("data.schema.value_rule")) config.data.schema.value_rule = 1;
  CacheConfig& cache = config.embedding.cache;
  if (is_override(written, "embedding.cache.policy")) return;  // which is refused
  if (cache.former_policy == "shared") {                       // its copies changed no result
    if (!is_override(written, "embedding.cache.memory")) cache.memory = "0";
    if (config.is_on_gpu() && !config.uses_graph()) config.device = JobDevice::kCpu;
  }
  cache.former_policy.clear();
}

}  // namespace satrap::job
