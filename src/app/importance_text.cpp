#include "src/app/importance_text.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/core/file.h"
#include "satrap/core/text.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

std::string describe_importance(const trainer::Importance& importance) {
  std::size_t width = std::string("input").size();
  for (const auto& one : importance.inputs) width = std::max(width, printable(one.input).size());
  const auto heading = [&](std::size_t metric) {
    const trainer::WorseMetric& worse = importance.metrics[metric];
    return fmt::format("{} {}", worse.name, worse.rises ? "rises" : "falls");
  };
  std::string text = fmt::format("\n{:<{}}  {:>13}  {:>10}  {:>10}  {:>10}\n", "input", width,
                                 heading(0), "+-", heading(1), "+-");
  for (const trainer::InputImportance& one : importance.inputs) {
    text += fmt::format("{:<{}}  {:>13.6f}  {:>10.6f}  {:>10.6f}  {:>10.6f}\n",
                        printable(one.input), width, one.worse[0].mean, one.worse[0].half_width,
                        one.worse[1].mean, one.worse[1].half_width);
  }
  return text + fmt::format(
                    "(without what an input says: its values are exchanged among rows; 95 % "
                    "intervals over {} repetitions)\n",
                    trainer::Importance::kRepetitions);
}

std::string write_importance(const trainer::Importance& importance,
                             const checkpoint::UsedCheckpoint& checkpoint) {
  if (!checkpoint.url.empty()) return "";
  fs::path folder = fs::absolute(checkpoint.path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  const fs::path run = folder.parent_path().parent_path();
  if (folder.parent_path().filename() != "checkpoints" || !fs::exists(run / "config.yaml"))
    return "";
  Json json = {{"checkpoint", printable(folder.filename().string())},
               {"examples", importance.examples},
               {"repetitions", trainer::Importance::kRepetitions},
               {"inputs", Json::array()}};
  for (const trainer::InputImportance& one : importance.inputs) {
    Json& input = json["inputs"].emplace_back(Json{{"input", printable(one.input)}});
    for (std::size_t m = 0; m < one.worse.size(); ++m) {
      const trainer::WorseMetric& metric = importance.metrics[m];
      const std::string key = fmt::format("{}_{}", metric.name, metric.rises ? "rise" : "fall");
      input[key] = number(one.worse[m].mean);
      input[key + "_interval"] = number(one.worse[m].half_width);
    }
  }
  const std::string path = run / trainer::kRunImportance;
  write_file_atomic(path, json.dump(2) + "\n");
  return path;
}

}  // namespace satrap::app
