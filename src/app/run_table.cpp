#include "run_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "best_evaluation.h"
#include "run_record.h"
#include "satrap/core/file.h"
#include "satrap/core/text.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;

struct Line {
  std::string name;
  BestEvaluation best;
  std::map<std::string, std::string> config;
};

Line line_of(const Json& run) {
  Line line{.name = shown_path(run["path"]), .best = best_evaluation(run), .config = {}};
  for (const Json& pair : run["config"]) line.config[pair[0]] = pair[1];
  return line;
}

/// NaN is last.
bool is_better(const Line& a, const Line& b) {
  if (std::isnan(a.best.value) || std::isnan(b.best.value)) return !std::isnan(a.best.value);
  return rises(a.best.metric) ? a.best.value > b.best.value : a.best.value < b.best.value;
}

std::set<std::string> differing_keys(const std::vector<Line>& lines) {
  std::set<std::string> keys;
  for (const Line& line : lines) {
    for (const auto& [key, value] : line.config) {
      const bool is_everywhere = std::ranges::all_of(lines, [&](const Line& other) {
        const auto found = other.config.find(key);
        return found != other.config.end() && found->second == value;
      });
      if (!is_everywhere && key != "run_dir" && key != "folder") keys.insert(key);
    }
  }
  return keys;
}

std::string shown(double value, int digits) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

std::string differences(const Line& line, const std::set<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) {
    if (const auto found = line.config.find(key); found != line.config.end()) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, found->second);
    }
  }
  return text;
}

}  // namespace

std::string run_table(const std::vector<std::string>& run_dirs) {
  std::vector<Line> lines;
  std::size_t width = 3;
  for (const std::string& directory : run_dirs) {
    lines.push_back(line_of(read_run(directory)));
    width = std::max(width, lines.back().name.size());
  }
  std::ranges::stable_sort(lines, is_better);
  const std::set<std::string> keys = differing_keys(lines);
  std::string text = fmt::format("{:<{}}  {:>16}  {:>9}  {:>9}  {:>7}  {}\n", "run", width,
                                 "best evaluation", "at step", "logloss", "ne", "differences");
  for (const Line& line : lines) {
    const BestEvaluation& best = line.best;
    text += fmt::format(
        "{:<{}}  {:>16}  {:>9}  {:>9}  {:>7}  {}\n", line.name, width,
        std::isnan(best.value) ? "-" : fmt::format("{} {:.5f}", best.metric, best.value),
        std::isnan(best.value) ? "-" : with_commas(best.step),
        shown(number_at(best.numbers, "/logloss"), 5), shown(number_at(best.numbers, "/ne"), 4),
        differences(line, keys));
  }
  return text;
}

}  // namespace satrap::app
