#include "src/app/report_page.h"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/data/remote_folder.h"
#include "src/app/best_evaluation.h"
#include "src/app/closing_words.h"
#include "src/app/evaluation_data.h"
#include "src/app/report/assets.h"
#include "src/app/run_differences.h"
#include "src/app/run_record.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;

/// JSON that is safe in a <script>: whatever its strings contain, nothing in it begins or ends an
/// element, and every byte is ASCII.
std::string embedded(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

void fill(std::string& page, std::string_view place, std::string_view text) {
  const std::size_t at = page.find(place);
  SATRAP_CHECK(at != std::string::npos, "page.html has no place ", place);
  page.replace(at, place.size(), text);
}

/// Runs are named by their directories, or by their paths if the names are equal.
void make_names_unique(std::vector<Json>& runs) {
  std::multiset<std::string> names;
  for (const Json& run : runs) names.insert(run["name"]);
  for (Json& run : runs) {
    if (names.count(run["name"]) > 1) run["name"] = run["path"];
  }
}

/// The facts of a run that the page has besides its record (read_run): `data`, `evaluation_data` in
/// words; `used`, the evaluation that is shown first, with `reliability`; `best`; `findings`. The
/// bins of other evaluations, which make the page large, go.
void add_conclusions(Json& run) {
  run["findings"] = run["summary"].is_object() ? Json(findings(run)) : Json::array();
  run["data"] = describe_training_data(run);
  run["evaluation_data"] = describe_evaluation_data(run);
  const BestEvaluation best = best_evaluation(run);
  run["best"] = nullptr;
  if (std::isfinite(best.value) && run["evaluations"].size() > 1) {
    run["best"] = {{"metric", best.metric}, {"step", best.step}, {"value", best.value}};
  }
  const UsedEvaluation used = used_evaluation(run);
  run["used"] = {{"step", used.step},
                 {"is_best", used.is_best},
                 {"eval", used.numbers},
                 {"reliability", Json::array()}};
  for (Json& line : run["evaluations"]) {
    if (line["step"] == used.step && line.contains("reliability") &&
        line["reliability"].is_array()) {
      run["used"]["reliability"] = std::move(line["reliability"]);
    }
    line.erase("reliability");
  }
}

}  // namespace

std::string report_page(const std::vector<std::string>& run_dirs) {
  std::vector<Json> runs;
  for (const std::string& directory : run_dirs) runs.push_back(read_run(directory));
  const std::vector<Settings> differences = config_differences(runs);
  Json groups = Json::array();
  for (const ComparableRuns& group : comparable_runs(runs)) {
    groups.push_back({{"runs", group.runs}, {"differences", group.differences}});
  }
  for (std::size_t r = 0; r < runs.size(); ++r) {
    add_conclusions(runs[r]);
    runs[r]["differences"] = differences[r];
  }
  make_names_unique(runs);
  std::string page(kReportPage);
  // The user's text is filled in last, so that it is not searched for placeholders.
  fill(page, "{{style}}", kReportStyle);
  fill(page, "{{charts}}", kReportCharts);
  fill(page, "{{headline}}", kReportHeadline);
  fill(page, "{{script}}", kReportScript);
  fill(page, "{{runs}}", embedded({{"runs", runs}, {"groups", groups}}));
  return page;
}

void write_report_page(const std::vector<std::string>& run_dirs, const std::string& path) {
  const std::string page = report_page(run_dirs);
  if (!data::is_url(path)) return write_file_atomic(path, page);
  const std::size_t slash = path.rfind('/');
  data::RemoteFolder(path.substr(0, slash)).put_text(page, path.substr(slash + 1));
}

std::string report_path(const std::string& run_dir) {
  return (std::filesystem::path(run_dir) / "report.html").string();
}

}  // namespace satrap::app
