#include "src/app/evaluation_data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/core/file.h"
#include "satrap/core/text.h"
#include "satrap/data/remote_folder.h"
#include "src/app/best_evaluation.h"
#include "src/app/run_differences.h"

namespace satrap::app {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t kShownReasons = 4;

/// Whether a value says something: "[]", "0" and "" do not.
bool says_something(const std::string& text) {
  return !text.empty() && text != "[]" && text != "0";
}

/// The entries of "[a.csv, b.csv]".
std::vector<std::string> entries_of(const std::string& list) {
  if (!list.starts_with('[') || !list.ends_with(']')) {
    return list.empty() ? std::vector<std::string>{} : std::vector{list};
  }
  std::vector<std::string> entries;
  std::string rest = list.substr(1, list.size() - 2);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(", "), rest.size());
    entries.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 2);
  }
  return entries;
}

struct Recorded {
  std::map<std::string, std::string> settings;            // that choose rows and labels
  std::map<std::string, std::vector<std::string>> files;  // of the keys that are paths, in full
  std::int64_t examples = -1, positives = -1;             // -1: unknown
  bool has_config = false;
};

/// -1: unknown.
std::int64_t count_of(double number) {
  constexpr double kExact = 1e15;
  return number >= 0.0 && number < kExact ? std::llround(number) : -1;
}

/// The positives of all labels together.
std::int64_t positives_of(const Json& line) {
  if (!line.contains("reliability") || !line["reliability"].is_array()) return -1;
  double positives = 0.0;
  for (const Json& label : line["reliability"]) {
    if (!label.is_object() || !label.value("positives", Json()).is_array()) return -1;
    for (const Json& count : label["positives"]) {
      if (!count.is_number()) return -1;
      positives += count.get<double>();
    }
  }
  return count_of(positives);
}

/// Whether a key of the configuration says what a label is.
bool says_label(const std::string& key, bool has_several) {
  if (!has_several) return key.starts_with("data.schema.label.");
  return key.starts_with("data.schema.labels.") && !key.ends_with(".weight") &&
         !key.ends_with(".name");
}

/// Whether a key of the configuration chooses evaluation rows.
bool chooses_rows(const std::string& key, bool is_part, bool is_synthetic) {
  if (is_synthetic) return key.starts_with("data.synthetic.") || key == "data.format";
  if (key.starts_with("data.eval")) return true;
  return is_part && key.starts_with("data.train");
}

bool has_synthetic_data(const Json& run) { return setting(run, "data.format") == "synthetic"; }

bool is_part_of_training(const Json& run) {
  return says_something(setting(run, "data.eval.fraction"));
}

Recorded recorded(const Json& run) {
  Recorded found;
  found.has_config = !run["config"].empty();
  const bool is_part = is_part_of_training(run);
  const bool is_synthetic = has_synthetic_data(run);
  const std::string folder = setting(run, "folder");
  const Settings settings = settings_by_name(run);
  const bool has_several = std::ranges::any_of(
      settings, [](const auto& one) { return one.first.starts_with("data.schema.labels."); });
  for (const auto& [key, text] : settings) {
    const bool counts = chooses_rows(key, is_part, is_synthetic) || says_label(key, has_several);
    if (!counts || !says_something(text)) continue;
    found.settings[key] = text;
    if (!key.ends_with(".path") && key != "data.train" && key != "data.eval") continue;
    for (const std::string& path : entries_of(text)) {
      const fs::path full = is_relative_path(path) ? fs::path(folder) / path : fs::path(path);
      found.files[key].push_back(data::is_url(path) ? path : full.lexically_normal().string());
    }
  }
  const UsedEvaluation used = used_evaluation(run);
  found.examples = count_of(number_at(used.numbers, "/examples"));
  for (const Json& line : run["evaluations"]) {
    if (line["step"] == used.step) found.positives = positives_of(line);
  }
  return found;
}

std::vector<std::string> differences_of(const Recorded& run, const Recorded& first) {
  std::vector<std::string> found;
  std::set<std::string> keys;
  if (run.has_config && first.has_config) {
    for (const Recorded* one : {&first, &run}) {
      for (const auto& [key, unused] : one->settings) keys.insert(key);
    }
  }
  const auto text_of = [](const Recorded& one, const std::string& key) {
    const auto at = one.settings.find(key);
    return at == one.settings.end() ? "none" : at->second;
  };
  for (const std::string& key : keys) {
    const std::string here = text_of(run, key), there = text_of(first, key);
    const auto files = run.files.find(key), others = first.files.find(key);
    const bool are_files = files != run.files.end() && others != first.files.end();
    if (here == there || (are_files && files->second == others->second)) continue;
    found.push_back(fmt::format("{} is {}, not {}", key, here, there));
  }
  if (run.examples >= 0 && first.examples >= 0 && run.examples != first.examples) {
    found.push_back(fmt::format("{} evaluation examples, not {}", with_commas(run.examples),
                                with_commas(first.examples)));
  } else if (run.positives >= 0 && first.positives >= 0 && run.positives != first.positives) {
    found.push_back(fmt::format("{} positive evaluation examples, not {}",
                                with_commas(run.positives), with_commas(first.positives)));
  }
  if (found.size() > kShownReasons + 1) {
    const std::size_t more = found.size() - kShownReasons;
    found.resize(kShownReasons);
    found.push_back(fmt::format("{} more", more));
  }
  return found;
}

std::string file_name(const std::string& path) {
  const std::string name = fs::path(path).filename();
  return name.empty() ? path : name;
}

std::string describe_files(const Json& run, const std::string& key) {
  std::string text = setting(run, key + ".path");
  if (text.empty()) text = setting(run, key);
  const std::vector<std::string> paths = entries_of(text);
  if (paths.empty()) return "";
  const std::string more = paths.size() > 1 ? fmt::format(" and {} more", paths.size() - 1) : "";
  return file_name(paths.front()) + more;
}

}  // namespace

std::string describe_training_data(const Json& run) {
  if (has_synthetic_data(run)) return "synthetic data";
  return describe_files(run, "data.train");
}

std::string describe_evaluation_data(const Json& run) {
  std::string text;
  if (has_synthetic_data(run)) {
    text = "synthetic data";
  } else if (is_part_of_training(run)) {
    const auto fraction = parse_number<double>(setting(run, "data.eval.fraction"));
    const std::string by = setting(run, "data.eval.by");
    text = fmt::format("{:.4g} % of {}{}", 100.0 * fraction.value_or(0.0),
                       describe_files(run, "data.train"),
                       by == "tail" || by.empty() ? ", its last rows"
                       : by == "hash"             ? ", chosen by hash"
                                                  : ", chosen by " + by);
  } else {
    text = describe_files(run, "data.eval");
  }
  for (const char* key : {"data.eval.where", "data.train.where"}) {
    const bool counts = key == std::string("data.eval.where") || is_part_of_training(run);
    if (const std::string where = setting(run, key); counts && !where.empty()) {
      text += " where " + where;
    }
  }
  return text;
}

std::vector<ComparableRuns> comparable_runs(const std::vector<Json>& runs) {
  std::vector<ComparableRuns> groups;
  std::vector<Recorded> firsts;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    Recorded run = recorded(runs[r]);
    const auto same = std::ranges::find_if(
        firsts, [&](const Recorded& first) { return differences_of(run, first).empty(); });
    if (same != firsts.end()) {
      groups[static_cast<std::size_t>(same - firsts.begin())].runs.push_back(r);
      continue;
    }
    groups.push_back({.runs = {r}});
    if (!firsts.empty()) groups.back().differences = differences_of(run, firsts.front());
    firsts.push_back(std::move(run));
  }
  return groups;
}

}  // namespace satrap::app
