#include "satrap/prepare/prepare.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/prepare/configuration_writer.h"
#include "src/prepare/data_set.h"
#include "src/prepare/md5.h"
#include "src/prepare/workspace.h"

namespace satrap::prepare {
namespace {

namespace fs = std::filesystem;

std::string names_text(const std::vector<std::string>& names, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : last;
    text += names[i];
  }
  return text;
}

const DataSet& find_set(const std::string& name) {
  for (const DataSet& set : data_sets()) {
    if (set.name == name) return set;
  }
  throw Error(ErrorCode::kInvalidConfig, concat("no data set is called '", name, "'; there are ",
                                                names_text(data_set_names(), " and ")));
}

/// The file of one of these names. Throws if there is none.
std::string find_file(const DataSet& set, const SourceFile& file, const std::string& folder) {
  for (const std::string& name : file.names) {
    std::string path = folder + "/" + name;
    if (fs::is_regular_file(path)) return path;
  }
  throw Error(ErrorCode::kInvalidConfig,
              concat("--from: ", folder, " has no file ", names_text(file.names, " or "),
                     ", which ", set.name, " needs; get it from ", set.url));
}

std::vector<std::string> find_files(const DataSet& set, const std::string& folder) {
  if (folder.empty() != set.files.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                set.files.empty()
                    ? concat("--from: ", set.name, " is generated and reads no files; leave it out")
                    : concat("--from is missing: the folder with the files of ", set.name,
                             ", which are at ", set.url));
  }
  std::vector<std::string> paths;
  for (const SourceFile& file : set.files) paths.push_back(find_file(set, file, folder));
  return paths;
}

/// MD5s of the files that have a published one, null if OpenSSL computes none; found once.
const nlohmann::ordered_json& md5s_of(Workspace& workspace,
                                      const DataSet& set,
                                      const std::vector<std::string>& paths) {
  const std::string stage = "md5";
  if (workspace.stage(stage) == nullptr) {
    auto found = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const SourceFile& file = set.files[i];
      const std::string name = fs::path(paths[i]).filename().string();
      if (file.md5.empty() || name != file.names.front()) continue;
      const std::optional<std::string> md5 = md5_of_file(paths[i]);
      found[name] = md5 ? nlohmann::ordered_json(*md5) : nlohmann::ordered_json();
    }
    workspace.finish_stage(stage, std::move(found));
  }
  return *workspace.stage(stage);
}

std::vector<std::string> notes_of(const DataSet& set,
                                  const nlohmann::ordered_json& md5s,
                                  const std::map<std::string, std::int64_t>& rows) {
  std::vector<std::string> notes;
  for (const SourceFile& file : set.files) {
    const std::string& name = file.names.front();
    const auto md5 = md5s.find(name);
    if (md5 == md5s.end() || *md5 == file.md5) continue;
    notes.push_back(
        md5->is_null() ? concat(name, ": its MD5 was not checked, because OpenSSL refuses MD5 here")
                       : fmt::format("{} is not the published copy: its MD5 is {}, not {}", name,
                                     md5->get<std::string>(), file.md5));
  }
  for (const char* split : {"train", "test"}) {
    if (set.write == nullptr || rows.contains(split)) continue;
    notes.push_back(fmt::format("{} has no rows, so the configurations do not run", split));
  }
  std::int64_t total = 0;
  for (const auto& [split, count] : rows) total += count;
  if (set.published_rows > 0 && total != set.published_rows) {
    notes.push_back(fmt::format("a part of the data set: {} of {} rows", with_commas(total),
                                with_commas(set.published_rows)));
  }
  return notes;
}

}  // namespace

std::vector<std::string> data_set_names() {
  std::vector<std::string> names;
  for (const DataSet& set : data_sets()) names.push_back(set.name);
  return names;
}

std::string describe_data_sets() {
  std::string text;
  for (const DataSet& set : data_sets()) text += fmt::format("  {:<11} {}\n", set.name, set.text);
  return text;
}

Prepared prepare(const Request& request) {
  const DataSet& set = find_set(request.set);
  const std::vector<std::string> paths = find_files(set, request.from);
  Workspace workspace(request, paths);
  const nlohmann::ordered_json md5s = md5s_of(workspace, set, paths);
  if (!workspace.is_finished() && set.write != nullptr) set.write(workspace, paths);
  const std::vector<std::string> kept = write_configurations(set.name, request.out);
  if (!workspace.is_finished()) workspace.finish();
  const std::map<std::string, std::int64_t> rows = workspace.rows();
  std::vector<std::string> notes = notes_of(set, md5s, rows);
  for (const std::string& name : kept) {
    notes.push_back(fmt::format(
        "{} is kept, which is not what prepare writes; remove it to have it written", name));
  }
  return {.rows = rows,
          .notes = std::move(notes),
          .first_configuration = workspace.path(set.configuration)};
}

}  // namespace satrap::prepare
