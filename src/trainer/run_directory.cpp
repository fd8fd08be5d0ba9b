#include "run_directory.h"

#include <array>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/data/remote_folder.h"
#include "satrap/job/config_paths.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFiles = {kRunConfig, kRunMetrics,   kRunSummary,
                               kRunReport, "tensorboard", "checkpoints"};

/// Lines of a metrics file up to `step`; drops an incomplete last line (of a killed run).
std::string lines_up_to(const std::string& path, std::int64_t step) {
  std::ifstream file(path);
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded() || !json.contains("step") || json["step"] > step) continue;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

RunDirectory::RunDirectory(const job::JobConfig& config, Mode mode)
    : config_(config), mode_(mode), root_(job::local_run_dir(config)) {
  ensure_directory(root_);
  lock_.emplace(root_);
  if (data::is_url(config.run_dir)) {
    remote_.emplace(config.run_dir);
    const std::string earlier = mode_ == Mode::kFresh ? remote_->find_run() : "";
    if (!earlier.empty()) refuse_earlier_run(earlier);
    remote_->take_over();
    remote_->bring(root_);
    if (mode_ != Mode::kResume) remove_all(checkpoints());
    return;
  }
  if (mode_ != Mode::kFresh) return;
  for (const char* name : kFiles) {
    if (fs::exists(path(name))) refuse_earlier_run(name);
  }
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  fs::remove_all(copies(), ignored);
}

void RunDirectory::refuse_earlier_run(const std::string& what) const {
  throw Error(ErrorCode::kInvalidConfig,
              concat("run_dir: '", shown_path(config_.run_dir), "' holds an earlier run (", what,
                     "): continue it with --resume, remove it with --overwrite, or choose another "
                     "run_dir"));
}

std::string RunDirectory::newest_checkpoint() const {
  if (!remote_) return checkpoint::find_checkpoint(root_);
  const std::string url = checkpoint::find_checkpoint(config_.run_dir);
  return url.empty() ? "" : checkpoint::fetch_checkpoint(url, checkpoints());
}

std::string RunDirectory::local_checkpoint(const std::string& path_or_url) const {
  if (!data::is_url(path_or_url)) return path_or_url;
  return checkpoint::fetch_checkpoint(path_or_url, copies());
}

std::optional<checkpoint::CheckpointMirror> RunDirectory::mirror() const {
  if (!remote_) return std::nullopt;
  return checkpoint::CheckpointMirror{.checkpoints = remote_->checkpoints(),
                                      .require_owned = [this] { remote_->require_owned(); }};
}

void RunDirectory::upload() const {
  if (remote_) remote_->upload(root_);
}

void RunDirectory::end() const {
  upload();
  if (remote_) remove_all(checkpoints());
}

void RunDirectory::begin(std::int64_t step, const nlohmann::ordered_json& start) {
  for (const char* name : kFiles) {
    if (mode_ == Mode::kOverwrite) remove_all(path(name));
  }
  if (remote_ && mode_ == Mode::kOverwrite) remote_->clear();
  const std::string written = dump_config(job::with_relative_paths(config_));
  write_file_atomic(path(kRunConfig), written);
  if (remote_) remote_->write_config(written);
  const std::string name = path(kRunMetrics);
  if (fs::exists(name)) write_file_atomic(name, lines_up_to(name, step));
  metrics_.open(name, std::ios::app);
  if (!metrics_) throw Error(ErrorCode::kIo, name + ": cannot be opened for writing");
  append_metrics({{"step", step}, {"start", start}});
  if (config_.train.tensorboard) events_.emplace(path("tensorboard"), step + 1);
}

void RunDirectory::append_metrics(const nlohmann::ordered_json& line) {
  require_held();
  metrics_ << line.dump() << '\n' << std::flush;
  if (!metrics_) throw Error(ErrorCode::kIo, path(kRunMetrics) + ": cannot be written");
  if (events_) events_->add(line["step"], line);
}

bool RunDirectory::has_finished(std::int64_t step) const {
  if (!fs::exists(path(kRunSummary))) return false;
  const auto summary = nlohmann::json::parse(read_file(path(kRunSummary)), nullptr, false);
  return summary.is_object() && summary.value("finished", false) &&
         summary.value("step", nlohmann::json()) == step;
}

void RunDirectory::write_summary(const nlohmann::ordered_json& summary) {
  require_held();
  write_file_atomic(path(kRunSummary), summary.dump(2) + "\n");
}

}  // namespace satrap::trainer
