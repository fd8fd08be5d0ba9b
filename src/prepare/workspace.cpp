#include "workspace.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/json.h"
#include "satrap/core/text.h"

namespace satrap::prepare {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kManifest = "prepare.json";
constexpr int kFormat = 1;  // raised when the same files and settings give other parts
constexpr double kSecondsBetweenLines = 0.25;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What must be the same for a preparation to continue. The number of threads need not be.
Json inputs_of(const Request& request, const std::vector<std::string>& sources) {
  Json files = Json::array();
  for (const std::string& source : sources) {
    files.push_back({{"name", fs::path(source).filename().string()},
                     {"bytes", fs::file_size(source)},
                     {"modified", fs::last_write_time(source).time_since_epoch().count()}});
  }
  return {{"format", kFormat},
          {"set", request.set},
          {"part_rows", request.part_rows},
          {"memory", request.memory_bytes},
          {"files", std::move(files)}};
}

Json read_manifest(const std::string& path) {
  try {
    Json manifest = Json::parse(read_file(path));
    static_cast<void>(manifest.at("inputs").at("set"));
    for (const Json& piece : manifest.at("pieces")) {
      for (const auto& [split, rows] : piece.items())
        static_cast<void>(integer_of<std::int64_t>(rows));
    }
    static_cast<void>(manifest.at("stages").is_object());
    return manifest;
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kCorrupt,
                concat(path, ": is no manifest of a preparation; begin afresh with --overwrite"));
  }
}

/// Files that a killed preparation was writing.
void remove_incomplete(const std::string& folder) {
  for (const std::string& name : list_directory(folder)) {
    if (name.ends_with(".tmp") || name.find(".tmp-") != std::string::npos)
      remove_all(folder + "/" + name);
  }
}

/// Runs that have trained on it stay. The manifest goes last.
void remove_preparation(const std::string& folder) {
  for (const std::string& name : list_directory(folder)) {
    if (name.ends_with(kPartEnding)) remove_all(folder + "/" + name);
  }
  remove_all(folder + "/work");
  remove_all(folder + "/" + kManifest);
}

}  // namespace

Workspace::Workspace(const Request& request, const std::vector<std::string>& sources)
    : request_(request), pool_(request.threads) {
  const Json inputs = inputs_of(request, sources);
  const std::string manifest = path(kManifest);
  if (request.overwrite && fs::exists(manifest)) remove_preparation(request.out);
  if (!request.overwrite && !fs::exists(manifest) && fs::exists(request.out) &&
      !list_directory(request.out).empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("--out: ", request.out,
                       " has files and no prepare.json, so no preparation has written them; name a "
                       "new folder"));
  }
  ensure_directory(request.out);
  if (fs::exists(manifest)) {
    manifest_ = read_manifest(manifest);
    if (manifest_["inputs"] != inputs) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat("--out: ", request.out, " holds a preparation of ",
                         manifest_["inputs"]["set"].get<std::string>(),
                         " from other files or with another --part-rows or --memory; name another "
                         "folder, or add --overwrite"));
    }
  } else {
    manifest_ = {{"inputs", inputs}, {"stages", Json::object()}, {"pieces", Json::array()}};
    save();
  }
  remove_incomplete(request.out);
  if (is_finished()) {
    remove_all(path("work"));
  } else {
    ensure_directory(path("work"));
    remove_incomplete(path("work"));
  }
}

void Workspace::save() const {
  write_file_atomic(path(kManifest),
                    manifest_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

const Json* Workspace::stage(const std::string& name) const {
  const auto found = manifest_.at("stages").find(name);
  return found == manifest_.at("stages").end() ? nullptr : &*found;
}

void Workspace::finish_stage(const std::string& name, Json found) {
  manifest_["stages"][name] = std::move(found);
  save();
}

void Workspace::add_piece(const std::map<std::string, std::int64_t>& rows) {
  manifest_["pieces"].push_back(rows);
  save();
}

std::map<std::string, std::int64_t> Workspace::rows() const {
  std::map<std::string, std::int64_t> sum;
  for (const Json& piece : manifest_.at("pieces")) {
    for (const auto& [split, rows] : piece.items()) sum[split] += integer_of<std::int64_t>(rows);
  }
  return sum;
}

void Workspace::finish() {
  manifest_["finished"] = true;
  save();
  remove_all(path("work"));
}

void Workspace::show(std::string_view what, const LineSource& source, std::int64_t rows) {
  if (!progress_.is_visible() || now_s() - last_shown_ < kSecondsBetweenLines) return;
  last_shown_ = now_s();
  progress_.show(fmt::format("{}: {}  {:.0f}%  {} rows", request_.set, what,
                             100.0 * source.progress(), with_commas(rows)));
}

}  // namespace satrap::prepare
