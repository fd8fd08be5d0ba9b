#include "run_directory.h"

#include <array>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/job/config_paths.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFiles = {"config.yaml", "metrics.jsonl", "summary.json",
                               "report.html", "tensorboard",   "checkpoints"};

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
    : config_(config), mode_(mode), root_(config.run_dir) {
  ensure_directory(root_);
  lock_.emplace(root_);
  if (mode_ != Mode::kFresh) return;
  for (const char* name : kFiles) {
    if (!fs::exists(path(name))) continue;
    throw Error(
        ErrorCode::kInvalidConfig,
        concat("run_dir: '", shown_path(root_), "' holds an earlier run (", name,
               "): continue it with --resume, remove it with --overwrite, or choose another "
               "run_dir"));
  }
}

void RunDirectory::begin(std::int64_t step, const nlohmann::ordered_json& start) {
  for (const char* name : kFiles) {
    if (mode_ == Mode::kOverwrite) remove_all(path(name));
  }
  write_file_atomic(path("config.yaml"), dump_config(job::with_relative_paths(config_)));
  const std::string name = path("metrics.jsonl");
  if (fs::exists(name)) write_file_atomic(name, lines_up_to(name, step));
  metrics_.open(name, std::ios::app);
  if (!metrics_) throw Error(ErrorCode::kIo, name + ": cannot be opened for writing");
  append_metrics({{"step", step}, {"start", start}});
  if (config_.train.tensorboard) events_.emplace(path("tensorboard"), step + 1);
}

void RunDirectory::append_metrics(const nlohmann::ordered_json& line) {
  require_held();
  metrics_ << line.dump() << '\n' << std::flush;
  if (!metrics_) throw Error(ErrorCode::kIo, path("metrics.jsonl") + ": cannot be written");
  if (events_) events_->add(line["step"], line);
}

bool RunDirectory::has_finished(std::int64_t step) const {
  if (!fs::exists(path("summary.json"))) return false;
  const auto summary = nlohmann::json::parse(read_file(path("summary.json")), nullptr, false);
  return summary.is_object() && summary.value("finished", false) &&
         summary.value("step", nlohmann::json()) == step;
}

void RunDirectory::write_summary(const nlohmann::ordered_json& summary) {
  require_held();
  write_file_atomic(path("summary.json"), summary.dump(2) + "\n");
}

}  // namespace satrap::trainer
