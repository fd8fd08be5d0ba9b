#include "src/app/run_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "satrap/core/file.h"
#include "satrap/core/text.h"
#include "src/app/best_evaluation.h"
#include "src/app/evaluation_data.h"
#include "src/app/run_differences.h"
#include "src/app/run_record.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kDifferencesInALine = 10;

struct Line {
  std::string name;
  BestEvaluation best;
  Settings differences;
};

/// The metric that all runs of a group are ranked by: theirs, or one that all have.
std::string ranking_metric(const std::vector<Line>& lines, const ComparableRuns& group) {
  const std::string& first = lines[group.runs.front()].best.metric;
  const bool is_one = std::ranges::all_of(
      group.runs, [&](std::size_t run) { return lines[run].best.metric == first; });
  if (is_one) return first;
  const BestEvaluation& best = lines[group.runs.front()].best;
  return best.numbers.contains("rmse") ? "rmse" : "logloss";
}

/// The best first; NaN is last.
void rank(const std::vector<Line>& lines, ComparableRuns& group) {
  const std::string metric = ranking_metric(lines, group);
  const auto value_of = [&](std::size_t run) {
    const BestEvaluation& best = lines[run].best;
    return best.metric == metric ? best.value : number_at(best.numbers, "/" + metric);
  };
  std::ranges::stable_sort(group.runs, [&](std::size_t a, std::size_t b) {
    const double left = value_of(a), right = value_of(b);
    if (std::isnan(left) || std::isnan(right)) return !std::isnan(left) && std::isnan(right);
    return rises(metric) ? left > right : left < right;
  });
}

std::string shown(double value, int digits) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

std::string differences(const Line& line) {
  std::string text;
  const std::size_t size = line.differences.size();
  const std::size_t shown = size > kDifferencesInALine + 1 ? kDifferencesInALine : size;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [key, value] = line.differences[i];
    const bool is_list = value.starts_with('+') || value.starts_with('-');  // of what it has, lacks
    text += fmt::format("{}{}{}{}", text.empty() ? "" : "  ", key, is_list ? " " : "=", value);
  }
  if (shown < size) text += fmt::format("  and {} more keys: see --out FILE", size - shown);
  return printable(text);
}

std::string text_of(const Line& line, std::size_t width) {
  const BestEvaluation& best = line.best;
  const bool is_known = !std::isnan(best.value);
  return fmt::format("{:<{}}  {:>16}  {:>9}  {:>9}  {:>7}  {}\n", line.name, width,
                     is_known ? fmt::format("{} {:.5f}", best.metric, best.value) : "-",
                     is_known ? with_commas(best.step) : "-",
                     shown(number_at(best.numbers, "/logloss"), 5),
                     shown(number_at(best.numbers, "/ne"), 4), differences(line));
}

}  // namespace

std::string run_table(const std::vector<std::string>& run_dirs) {
  std::vector<Json> runs;
  for (const std::string& directory : run_dirs) runs.push_back(read_run(directory));
  const std::vector<Settings> all = config_differences(runs);
  std::vector<Line> lines;
  std::size_t width = 3;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    lines.push_back({.name = printable(shown_path(runs[r]["path"])),
                     .best = best_evaluation(runs[r]),
                     .differences = all[r]});
    width = std::max(width, lines.back().name.size());
  }
  std::string text = fmt::format("{:<{}}  {:>16}  {:>9}  {:>9}  {:>7}  {}\n", "run", width,
                                 "best evaluation", "at step", "logloss", "ne", "differences");
  for (ComparableRuns& group : comparable_runs(runs)) {
    rank(lines, group);
    if (!group.differences.empty()) {
      text += fmt::format("\nnot ranked with {}, since the evaluation data differ: {}\n",
                          lines.front().name,
                          printable(fmt::format("{}", fmt::join(group.differences, "; "))));
    }
    for (const std::size_t run : group.runs) text += text_of(lines[run], width);
  }
  return text;
}

}  // namespace satrap::app
