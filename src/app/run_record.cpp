#include "src/app/run_record.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/data/remote_folder.h"
#include "satrap/trainer/importance.h"

namespace satrap::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxReports = 2000;  // more make the page larger, but curves no finer

double seconds_of(const Json& line) {
  const auto found = line.find("seconds");
  return found != line.end() && found->is_number() ? found->get<double>() : 0.0;
}

/// The lines of metrics.jsonl by kind, each list in the order of its steps.
class Lines {
 public:
  void add(Json line) {
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return;
    const Kind kind = line.contains("start")  ? kStarts
                      : line.contains("eval") ? kEvaluations
                                              : kReports;
    forget_what_is_said_again(kind, line["step"]);
    if (kind == kStarts) {
      earlier_seconds_ = last_time();
      ++process_;
    }
    line["time"] = earlier_seconds_ + seconds_of(line);
    line["process"] = process_;
    lists_[kind].push_back(std::move(line));
  }

  void move_into(Json& run) {
    std::vector<Json>& reports = lists_[kReports];
    const std::size_t stride = (reports.size() + kMaxReports - 1) / kMaxReports;
    run["num_reports"] = reports.size();
    if (stride > 1) {
      std::vector<Json> kept;  // with the last one
      for (std::size_t i = (reports.size() - 1) % stride; i < reports.size(); i += stride) {
        kept.push_back(std::move(reports[i]));
      }
      reports = std::move(kept);
    }
    for (std::size_t kind = 0; kind < kNumKinds; ++kind) {
      run[kNames[kind]] = std::move(lists_[kind]);
    }
  }

 private:
  enum Kind : std::size_t { kStarts, kReports, kEvaluations, kNumKinds };
  static constexpr std::array kNames = {"starts", "reports", "evaluations"};

  void forget_what_is_said_again(Kind kind, std::int64_t step) {
    for (std::size_t k = 0; k < kNumKinds; ++k) {
      const std::int64_t from = k == kind && kind != kStarts ? step : step + 1;
      std::vector<Json>& list = lists_[k];
      while (!list.empty() && list.back()["step"] >= from) list.pop_back();
    }
  }

  double last_time() const {
    double last = 0.0;
    for (const std::vector<Json>& list : lists_) {
      if (!list.empty()) last = std::max(last, list.back()["time"].get<double>());
    }
    return last;
  }

  std::array<std::vector<Json>, kNumKinds> lists_;
  std::int64_t process_ = 0;      // the number of the current one
  double earlier_seconds_ = 0.0;  // of training, by the processes before it
};

void read_metrics(const std::string& text, Json& run) {
  Lines lines;
  std::istringstream file(text);
  for (std::string line; std::getline(file, line);) {
    lines.add(Json::parse(line, nullptr, /*allow_exceptions=*/false));
  }
  lines.move_into(run);
}

/// The content of a file of a run; nullopt if there is none.
std::optional<std::string> find_text(const std::string& run, const std::string& name) {
  if (data::is_url(run)) return data::RemoteFolder(run).find_text(name);
  const std::string path = run + "/" + name;
  return fs::exists(path) ? std::optional(read_file(path)) : std::nullopt;
}

/// The last part of the path, with or without a slash at its end.
std::string name_of(const std::string& directory) {
  if (data::is_url(directory)) return fs::path(data::RemoteFolder(directory).url()).filename();
  const fs::path path = fs::canonical(directory);
  return path.has_filename() ? path.filename().string() : path.string();
}

}  // namespace

Json read_run(const std::string& directory) {
  if (!data::is_url(directory) && !fs::is_directory(directory)) {
    throw Error(ErrorCode::kIo, concat(directory, ": no such directory"));
  }
  const std::string config = directory + "/config.yaml";
  const std::optional<std::string> config_text = find_text(directory, "config.yaml");
  const std::optional<std::string> metrics = find_text(directory, "metrics.jsonl");
  if (!config_text && !metrics) {
    throw Error(ErrorCode::kIo, concat(directory,
                                       ": not a run directory: it has neither config.yaml nor "
                                       "metrics.jsonl"));
  }
  Json run = {{"name", name_of(directory)}, {"path", directory}};
  run["config"] = Json::array();
  for (const ConfigValue& value : config_values(config_text.value_or(""), config)) {
    run["config"].push_back({value.path, value.text});
  }
  run["config_text"] = config_text.value_or("");
  read_metrics(metrics.value_or(""), run);
  run["importance"] = nullptr;
  if (const std::optional<std::string> importance = find_text(directory, trainer::kRunImportance)) {
    run["importance"] = Json::parse(*importance, nullptr, false);
    if (!run["importance"].is_object()) run["importance"] = nullptr;
  }
  run["summary"] = nullptr;
  if (const std::optional<std::string> summary = find_text(directory, "summary.json")) {
    run["summary"] = Json::parse(*summary, nullptr, false);
    if (!run["summary"].is_object()) {
      throw Error(ErrorCode::kCorrupt, directory + "/summary.json: is not a JSON object");
    }
  }
  return run;
}

}  // namespace satrap::app
