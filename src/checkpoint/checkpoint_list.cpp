#include <algorithm>
#include <filesystem>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/checkpoint/remote_checkpoints.h"
#include "satrap/core/error.h"
#include "satrap/data/remote_folder.h"

namespace satrap::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Other folders are not ours, whatever their names begin with.
bool is_checkpoint(const fs::path& path) {
  return step_of(path.filename().string()) && fs::is_directory(path);
}

/// `path` may be a URL.
Manifest read_manifest(const std::string& path) {
  if (!data::is_url(path)) return Manifest::read(path);
  const data::RemoteFolder folder(path);
  return Manifest::from_json(folder.find_text(kManifestFile).value_or(""), folder.url());
}

fs::path without_trailing_slash(const std::string& directory) {
  fs::path path(directory);
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

std::vector<std::string> checkpoint_paths(const std::string& directory) {
  if (data::is_url(directory)) return remote_checkpoint_urls(directory);
  fs::path path = without_trailing_slash(directory);
  if (is_checkpoint(path) || fs::exists(path / kManifestFile)) return {path.string()};
  if (fs::is_directory(path / "checkpoints")) path /= "checkpoints";
  std::vector<std::string> paths;
  if (!fs::is_directory(path)) return paths;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (is_checkpoint(entry.path())) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());  // names sort by step
  return paths;
}

std::string find_checkpoint(const std::string& directory) {
  const std::vector<std::string> paths = checkpoint_paths(directory);
  return paths.empty() ? "" : paths.back();
}

std::vector<CheckpointInfo> list_checkpoints(const std::string& directory) {
  std::vector<CheckpointInfo> all;
  std::optional<EarlyStoppingState> early_stopping;  // of the newest
  for (const std::string& path : checkpoint_paths(directory)) {
    CheckpointInfo& info = all.emplace_back();
    info.path = path;
    try {
      const Manifest manifest = read_manifest(path);
      info.step = manifest.step;
      const data::DataPosition position = manifest.position_of(0, 1);
      info.epoch = position.epoch;
      info.batches = position.batches;
      info.examples = manifest.examples;
      for (const auto& table : manifest.tables) info.rows += table.rows;
      for (const auto& [name, file] : manifest.files) info.bytes += file.bytes;
      info.created = manifest.created;
      info.metrics = manifest.metrics;
      early_stopping = manifest.early_stopping;
    } catch (const Error& error) {
      info.problem = error.what();
    }
  }
  for (CheckpointInfo& info : all) {
    const bool is_best = early_stopping && info.step == early_stopping->best_step;
    if (is_best && info.problem.empty()) info.best_of = early_stopping->metric;
  }
  return all;
}

}  // namespace satrap::checkpoint
