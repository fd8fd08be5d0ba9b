#include "src/app/checkpoint_paths.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/remote_folder.h"
#include "satrap/trainer/run_series.h"

namespace satrap::app {
namespace {

constexpr const char* kBest = "@best";
constexpr const char* kLast = "@last";

bool take_suffix(std::string& path, const std::string& suffix) {
  std::error_code unknown;
  if (!path.ends_with(suffix) || std::filesystem::exists(path, unknown)) return false;
  path.resize(path.size() - suffix.size());
  return true;
}

/// The newest run of the job, where `path` is the folder of the first.
std::string with_newest_run(const std::string& path) {
  const std::string newest = trainer::newest_run(path);
  if (newest != path) {
    log_info("{}: the newest run of the job; the first one's checkpoints are {}/checkpoints",
             newest, path);
  }
  return newest;
}

}  // namespace

void UsedJob::add_to(CLI::App& command) {
  job.add_optional_to(command);
  command
      .add_option(
          "--checkpoint", checkpoint.path,
          "A checkpoint, or a run directory: the best checkpoint that early stopping found, "
          "else the newest (DIR@last: the newest in any case)")
      ->required()
      ->type_name("DIR");
  command.add_flag("--accept-changed-config", checkpoint.accept_changed_config,
                   "Use the checkpoint although the configuration reads or computes something else "
                   "than it was trained with");
}

job::JobConfig UsedJob::load(const HostProgram& host) {
  std::optional<job::JobConfig> named = host.job;
  given_ = checkpoint.path;
  if (!job.config.empty()) named = job.load();  // its errors come first
  const std::string chosen = checkpoint_to_use(checkpoint.path);
  local_ = std::make_shared<const checkpoint::LocalCheckpoint>(chosen);
  checkpoint.path = local_->path();
  if (data::is_url(chosen)) checkpoint.url = chosen;
  if (named) return *std::move(named);
  job.config = checkpoint.path + "/config.yaml";
  return job.load();
}

pipeline::MakeNetwork UsedJob::network(const job::JobConfig& config,
                                       const HostProgram& host,
                                       const std::string& command) const {
  return network_of(config, host, concat(command, " --checkpoint ", given_));
}

void add_data_option(CLI::App& command, std::vector<std::string>& data, const std::string& what) {
  command
      .add_option("--data", data,
                  what + "; -: standard input; may be repeated; default: the evaluation data")
      ->allow_extra_args(false)
      ->type_name("FILE");
}

void use_data(const std::vector<std::string>& data,
              const JobArguments& job,
              job::JobConfig& config) {
  if (data.empty()) return;
  for (const std::string& override : job.overrides) {
    const std::string key = override.substr(0, override.find('='));
    if (key != "data.eval" && !key.starts_with("data.eval.")) continue;
    if (key == "data.eval.path") continue;  // what a job says for all of its commands
    throw Error(ErrorCode::kInvalidConfig,
                concat("--data: takes the place of data.eval, so '", override,
                       "' has no effect; leave --data out, and write 'data.eval={path: ",
                       data.front(), ", where: ...}'"));
  }
  if (config.data.is_synthetic()) {
    throw Error(ErrorCode::kInvalidConfig,
                "--data: cannot be used with data.format synthetic, which reads no files");
  }
  config.data.eval = {};
  config.data.eval.path = data;
}

void require_examples(const trainer::Evaluation& result) {
  if (result.examples > 0) return;
  throw Error(ErrorCode::kInvalidData, "no row of the evaluation data counts in a metric");
}

std::vector<checkpoint::CheckpointInfo> checkpoints_of(const std::string& path) {
  std::vector<checkpoint::CheckpointInfo> found = checkpoint::list_checkpoints(path);
  if (found.empty()) {
    throw Error(ErrorCode::kIo,
                concat(path, ": neither a checkpoint nor a directory that holds one"));
  }
  return found;
}

std::string newest_checkpoint(const std::string& path) {
  return checkpoints_of(with_newest_run(path)).back().path;
}

std::string checkpoint_to_use(const std::string& path) {
  std::string directory = path;
  const bool takes_last = take_suffix(directory, kLast);
  const bool needs_best = !takes_last && take_suffix(directory, kBest);
  directory = with_newest_run(directory);
  const std::vector<checkpoint::CheckpointInfo> found = checkpoints_of(directory);
  if (takes_last) return found.back().path;
  const auto best =
      std::ranges::find_if(found, [](const auto& one) { return !one.best_of.empty(); });
  if (best != found.end()) {
    if (&*best != &found.back()) {
      log_info("{}: the best by {}; the newest is step {}, {}{}", best->path, best->best_of,
               found.back().step, directory, kLast);
    }
    return best->path;
  }
  if (needs_best) {
    throw Error(ErrorCode::kIo, concat(directory,
                                       ": none of its checkpoints is known as the best; "
                                       "only a run with train.early_stopping marks one"));
  }
  return found.back().path;
}

}  // namespace satrap::app
