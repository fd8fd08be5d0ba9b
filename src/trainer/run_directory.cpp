#include "src/trainer/run_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "satrap/data/remote_folder.h"
#include "satrap/job/config_paths.h"
#include "satrap/trainer/importance.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFiles = {kRunConfig,     kRunMetrics,   kRunSummary,  kRunReport,
                               kRunImportance, "tensorboard", "checkpoints"};

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
    require_no_earlier_run();
    remote_->bring(root_);
    if (mode_ != Mode::kResume) remove_all(checkpoints());
    return;
  }
  require_no_earlier_run();
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

void RunDirectory::require_no_earlier_run() const {
  if (mode_ != Mode::kFresh) return;
  if (remote_) {
    const std::string found = remote_->find_run();
    if (!found.empty()) refuse_earlier_run(found);
    return;
  }
  const std::string found = earlier_run(root_);
  if (!found.empty()) refuse_earlier_run(found);
}

/// The name of what is there of a run; "": nothing.
std::string RunDirectory::earlier_run(const std::string& root) {
  const auto* found = std::ranges::find_if(
      kFiles, [&](const char* name) { return fs::exists(fs::path(root) / name); });
  return found == kFiles.end() ? "" : *found;
}

std::string RunDirectory::newest_checkpoint() {
  if (!remote_) return checkpoint::find_checkpoint(root_);
  newest_ = checkpoint::find_checkpoint(config_.run_dir);
  return newest_->empty() ? "" : checkpoint::fetch_checkpoint(*newest_, checkpoints());
}

std::string RunDirectory::local_checkpoint(const std::string& path_or_url) const {
  if (!data::is_url(path_or_url)) return path_or_url;
  return checkpoint::fetch_checkpoint(path_or_url, copies());
}

std::optional<checkpoint::CheckpointMirror> RunDirectory::mirror() const {
  if (!remote_) return std::nullopt;
  return checkpoint::CheckpointMirror{.checkpoints = remote_->checkpoints(),
                                      .owner = remote_->owner_id(),
                                      .require_owned = [this] { remote_->require_owned(); },
                                      .is_lost = [this] { return remote_->is_lost(); },
                                      .before_manifest = [this] { upload_before_manifest(); }};
}

/// Whoever continues from the checkpoint finds its metrics there.
void RunDirectory::upload_before_manifest() const {
  remote_->require_owned();
  try {
    remote_->upload(root_);
  } catch (const Error& error) {
    log_warning("{}; the metrics are copied again with the next checkpoint", error.what());
  }
  remote_->require_owned();
}

void RunDirectory::end() const {
  if (!remote_) return;
  remote_->require_owned();
  remote_->upload(root_);
  remove_all(checkpoints());
}

/// The job that runs there, if there is one, ends only if this one can go on.
void RunDirectory::take_over() const {
  require_no_earlier_run();
  if (newest_) {
    const std::string newest = checkpoint::find_checkpoint(config_.run_dir);
    if (newest != *newest_) {
      throw Error(ErrorCode::kIo,
                  concat("run_dir: '", config_.run_dir, "': another job is training there: since ",
                         "this one began, its newest checkpoint has become ",
                         newest.empty() ? "none" : newest, "; stop that job and start again"));
    }
  }
  remote_->take_over();
}

void RunDirectory::require_held() const {
  lock_->require_held();
  if (remote_ && remote_->is_lost()) remote_->require_owned();
}

void RunDirectory::begin(std::int64_t step, const nlohmann::ordered_json& start) {
  if (remote_) take_over();
  for (const char* name : kFiles) {
    if (mode_ == Mode::kOverwrite) remove_all(path(name));
  }
  if (remote_ && mode_ == Mode::kOverwrite) remote_->clear();
  const std::string written = dump_config(job::with_relative_paths(config_));
  write_file_atomic(path(kRunConfig), written);
  if (remote_) remote_->write_config(written);
  const std::string name = path(kRunMetrics);
  if (fs::exists(name)) write_file_atomic(name, lines_up_to(name, step));
  metrics_.emplace(name);
  append_metrics({{"step", step}, {"start", start}});
  if (config_.train.tensorboard) {
    events_.emplace(path("tensorboard"), step + 1,
                    remote_ ? remote_->events() : std::vector<std::string>{});
  }
}

void RunDirectory::append_metrics(const nlohmann::ordered_json& line) {
  require_held();
  metrics_->append(line.dump() + "\n");
  if (events_) events_->add(line["step"], line);
}

bool RunDirectory::has_finished(std::int64_t step) const {
  if (!fs::exists(path(kRunSummary))) return false;
  const auto summary = nlohmann::json::parse(read_file(path(kRunSummary)), nullptr, false);
  return summary.is_object() && summary.value("finished", false) &&
         summary.value("step", nlohmann::json()) == step;
}

nlohmann::ordered_json RunDirectory::evaluation_of(std::int64_t step) const {
  const std::string name = path(kRunMetrics);
  std::istringstream lines((fs::exists(name) ? read_file(name) : "") +
                           (metrics_ ? metrics_->waiting() : ""));
  nlohmann::ordered_json found;
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (line.is_object() && line.value("step", std::int64_t{-1}) == step && line.contains("eval")) {
      found = line["eval"];
    }
  }
  return found;
}

void RunDirectory::write_summary(const nlohmann::ordered_json& summary) {
  require_held();
  if (metrics_) metrics_->finish();
  write_file_atomic(path(kRunSummary), summary.dump(2) + "\n");
}

}  // namespace satrap::trainer
