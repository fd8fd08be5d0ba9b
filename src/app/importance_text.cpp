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
  std::string text = fmt::format("\n{:<{}}  {:>13}  {:>10}  {:>10}  {:>10}\n", "input", width,
                                 "logloss rises", "+-", "auc falls", "+-");
  for (const trainer::InputImportance& one : importance.inputs) {
    text += fmt::format("{:<{}}  {:>13.6f}  {:>10.6f}  {:>10.6f}  {:>10.6f}\n",
                        printable(one.input), width, one.logloss_rise.mean,
                        one.logloss_rise.half_width, one.auc_fall.mean, one.auc_fall.half_width);
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
    json["inputs"].push_back({{"input", printable(one.input)},
                              {"logloss_rise", number(one.logloss_rise.mean)},
                              {"logloss_rise_interval", number(one.logloss_rise.half_width)},
                              {"auc_fall", number(one.auc_fall.mean)},
                              {"auc_fall_interval", number(one.auc_fall.half_width)}});
  }
  const std::string path = run / trainer::kRunImportance;
  write_file_atomic(path, json.dump(2) + "\n");
  return path;
}

}  // namespace satrap::app
