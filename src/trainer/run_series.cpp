#include "satrap/trainer/run_series.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "satrap/core/text.h"
#include "satrap/data/remote_folder.h"
#include "src/trainer/run_directory.h"

namespace satrap::trainer {
namespace {

namespace fs = std::filesystem;

/// N of `name`-N; 0: it is no such name.
std::int64_t number_of(std::string_view folder, const std::string& name) {
  if (!folder.starts_with(name + "-")) return 0;
  folder.remove_prefix(name.size() + 1);
  const std::optional<std::int64_t> number = parse_number<std::int64_t>(folder);
  return number && *number > 1 && folder.front() != '0' ? *number : 0;
}

std::string with_number(const std::string& first, std::int64_t number) {
  return number > 1 ? first + "-" + std::to_string(number) : first;
}

/// Whether the run there says that it is of this series.
bool is_of_series(const std::string& folder, const std::string& series) {
  std::ifstream metrics(folder + "/" + kRunMetrics);
  std::string line;
  if (!std::getline(metrics, line)) return false;
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto start = json.is_object() ? json.find("start") : json.end();
  return start != json.end() && start->is_object() && start->value("series", "") == series;
}

/// The highest number for which is_wanted(folder); 0: there is none.
template <class Wanted>
std::int64_t highest_number(const std::string& first, const Wanted& is_wanted) {
  const fs::path parent = fs::path(first).parent_path();
  const std::string name = series_of(first);
  std::error_code unknown;  // a folder that is not there has no runs
  std::int64_t highest = 0;
  for (const auto& entry : fs::directory_iterator(parent.empty() ? "." : parent, unknown)) {
    const std::int64_t number = number_of(entry.path().filename().string(), name);
    if (number > highest && is_wanted(with_number(first, number))) highest = number;
  }
  return highest;
}

}  // namespace

std::string series_of(const std::string& first) { return fs::path(first).filename().string(); }

std::string next_run(const std::string& first) {
  const std::int64_t highest = highest_number(first, [](const std::string&) { return true; });
  if (highest == 0 && !RunDirectory::holds_run(first)) return first;
  return with_number(first, std::max<std::int64_t>(highest, 1) + 1);
}

std::string newest_run(const std::string& path) {
  if (data::is_url(path)) return path;
  const std::string first = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  const std::int64_t highest = highest_number(
      first, [&](const std::string& folder) { return is_of_series(folder, series_of(first)); });
  return highest > 0 ? with_number(first, highest) : path;
}

}  // namespace satrap::trainer
