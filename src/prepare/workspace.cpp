#include "src/prepare/workspace.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/json.h"
#include "satrap/core/text.h"
#include "src/prepare/configuration_writer.h"
#include "src/prepare/configurations.h"
#include "src/prepare/file_names.h"

namespace satrap::prepare {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kManifest = "prepare.json";
// Keys of the manifest that are there for a while.
constexpr const char* kBegunPiece = "piece";   // the rows of a piece whose parts get their names
constexpr const char* kReplaced = "replaced";  // what --overwrite has not removed yet
constexpr int kFormat = 1;  // raised when the same files and settings give other parts
constexpr double kSecondsBetweenLines = 0.25;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The inputs that must be the same for a preparation to continue; the number of threads need not.
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

/// Throws Error(kCorrupt) or Json::exception if it is no rows of splits.
void check_piece(const Json& piece) {
  for (const auto& [split, rows] : piece.items()) {
    static_cast<void>(integer_of<std::int64_t>(rows));
    if (!is_split_name(split)) {
      throw Error(ErrorCode::kCorrupt, concat("'", split, "' is no name of a split"));
    }
  }
}

void check_pieces(const Json& begun) {
  for (const Json& piece : begun.at("pieces")) check_piece(piece);
  if (begun.contains(kBegunPiece)) check_piece(begun.at(kBegunPiece));
}

/// Its pieces name parts beside it, which --overwrite removes.
Json read_manifest(const std::string& path) {
  std::string why;
  try {
    Json manifest = Json::parse(read_file(path));
    static_cast<void>(manifest.at("inputs").at("set").get<std::string>());
    check_pieces(manifest);
    if (manifest.contains(kReplaced)) {
      check_pieces(manifest.at(kReplaced));
      static_cast<void>(manifest.at(kReplaced).at("set").get<std::string>());
    }
    static_cast<void>(manifest.at("stages").is_object());
    return manifest;
  } catch (const nlohmann::json::exception&) {
    why.clear();  // the parser's words help nobody
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    why = concat(" (", error.what(), ")");
  }
  throw Error(ErrorCode::kCorrupt,
              concat(path, ": is no manifest of a preparation", why,
                     ", so the parts beside it are unknown; name another folder with --out"));
}

/// A folder of that name is none of a preparation, and stays.
void remove_part(const std::string& path) {
  if (!fs::is_directory(fs::symlink_status(path))) remove_all(path);
}

/// The pieces to remove if another preparation replaces this one, also one that is not
/// counted because the preparation was killed before that.
Json replaced_by_another(const Json& manifest) {
  if (manifest.contains(kReplaced)) return manifest.at(kReplaced);
  Json pieces = manifest.at("pieces");
  if (manifest.contains(kBegunPiece)) pieces.push_back(manifest.at(kBegunPiece));
  return {{"set", manifest.at("inputs").at("set")}, {"pieces", std::move(pieces)}};
}

/// Throws if a source is in the folder, by its own name or by a link: a preparation replaces and
/// removes files there.
void check_is_outside(const std::vector<std::string>& sources, const std::string& folder) {
  if (!fs::exists(folder)) return;
  const std::string real_folder = fs::canonical(folder).string();
  for (const std::string& source : sources) {
    const std::string real = fs::canonical(source).string();
    if (without_folder(real, real_folder) == real) continue;
    throw Error(ErrorCode::kInvalidConfig, concat("--out: ", folder, " has the file ", source,
                                                  " in it, which is read; name another folder"));
  }
}

/// Throws if the folder has files that are none of a preparation: there is no manifest beside them.
void check_is_own(const std::string& folder) {
  if (!fs::exists(folder)) return;
  const std::vector<std::string> names = list_directory(folder);
  if (std::ranges::find(names, kManifest) != names.end()) return;
  if (std::ranges::all_of(names, [](const std::string& name) {
        return name == FolderLock::kFile || complete_name(name) == kManifest;
      })) {
    return;
  }
  throw Error(ErrorCode::kInvalidConfig,
              concat("--out: ", folder,
                     " has files and no prepare.json, so no preparation has written them; name a "
                     "new folder"));
}

/// Creates the folder of a preparation, if it is missing.
const std::string& open_folder(const Request& request, const std::vector<std::string>& sources) {
  check_is_outside(sources, request.out);
  check_is_own(request.out);
  ensure_directory(request.out);
  return request.out;
}

/// Whether a preparation writes a file of this name to its folder.
bool is_own_name(std::string_view name) {
  return name == kManifest || is_part_name(name) ||
         std::ranges::any_of(configuration_files(),
                             [&](const ConfigurationFile& file) { return file.name == name; });
}

/// Removes files that a killed preparation was writing.
template <class IsOwn>
void remove_incomplete(const std::string& folder, const IsOwn& is_own) {
  for (const std::string& name : list_directory(folder)) {
    if (is_own(complete_name(name))) remove_all(folder + "/" + name);
  }
}

}  // namespace

Workspace::Workspace(const Request& request, const std::vector<std::string>& sources)
    : request_(request), lock_(open_folder(request, sources)), pool_(request.threads) {
  const Json inputs = inputs_of(request, sources);
  if (fs::exists(path(kManifest))) manifest_ = read_manifest(path(kManifest));
  if (!manifest_.is_null() && !request.overwrite && manifest_["inputs"] != inputs) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("--out: ", request.out, " holds a preparation of ",
                       manifest_["inputs"]["set"].get<std::string>(),
                       " from other files or with another --part-rows or --memory; name another "
                       "folder, or add --overwrite"));
  }
  if (manifest_.is_null() || request.overwrite) {
    Json begun = {{"inputs", inputs}, {"stages", Json::object()}, {"pieces", Json::array()}};
    if (!manifest_.is_null()) begun[kReplaced] = replaced_by_another(manifest_);
    manifest_ = std::move(begun);
    save();
  }
  if (manifest_.contains(kReplaced)) remove_replaced();
  remove_incomplete(request.out, is_own_name);
  if (is_finished()) {
    remove_all(work_folder());
  } else {
    ensure_directory(work_folder());
    remove_incomplete(work_folder(), [](std::string_view name) { return !name.empty(); });
  }
}

/// After a kill here, the same command or another --overwrite continues.
void Workspace::remove_replaced() {
  std::int64_t number = 0;
  for (const Json& piece : manifest_.at(kReplaced).at("pieces")) {
    for (const auto& [split, rows] : piece.items()) remove_part(path(part_name(split, number)));
    ++number;
  }
  remove_configurations(manifest_.at(kReplaced).at("set").get<std::string>(), request_.out);
  remove_all(work_folder());
  manifest_.erase(kReplaced);
  save();
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

void Workspace::begin_piece(const std::map<std::string, std::int64_t>& rows) {
  manifest_[kBegunPiece] = rows;
  save();
}

void Workspace::finish_piece() {
  manifest_["pieces"].push_back(manifest_.at(kBegunPiece));
  manifest_.erase(kBegunPiece);
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
  remove_all(work_folder());
}

void Workspace::show(std::string_view what, const LineSource& source, std::int64_t rows) {
  if (!progress_.is_visible() || now_s() - last_shown_ < kSecondsBetweenLines) return;
  last_shown_ = now_s();
  progress_.show(fmt::format("{}: {}  {:.0f}%  {} rows", request_.set, what,
                             100.0 * source.progress(), with_commas(rows)));
}

}  // namespace satrap::prepare
