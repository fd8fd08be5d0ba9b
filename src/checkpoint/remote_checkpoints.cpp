#include "satrap/checkpoint/remote_checkpoints.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/log.h"
#include "src/checkpoint/checkpoint_directory.h"

namespace satrap::checkpoint {
namespace {

using Entry = data::RemoteFolder::Entry;

constexpr const char* kAbandonedManifest = "abandoned-manifest.json";

std::string manifest_of(const std::string& name) { return name + "/" + kManifestFile; }

bool holds(const std::vector<Entry>& entries, const std::string& name, bool is_folder) {
  return std::ranges::any_of(entries, [&](const Entry& entry) {
    return entry.name == name && entry.is_folder == is_folder;
  });
}

/// The place of a file that a manifest lists, in the folder of the checkpoint.
std::string place_of(const Manifest& manifest, const std::string& file) {
  return manifest.folder.empty() ? file : manifest.folder + "/" + file;
}

std::string last_part(const std::string& url) { return url.substr(url.rfind('/') + 1); }

/// Whether a file of this machine is as the manifest says.
bool matches(const std::string& directory, const std::string& file, const Manifest& manifest) {
  try {
    read_checked(directory, file, manifest, [](std::span<const std::byte>) {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool holds_checkpoint(const std::string& path, const std::string& json, const Manifest& manifest) {
  const std::string manifest_path = path + "/" + kManifestFile;
  return std::filesystem::exists(manifest_path) && read_file(manifest_path) == json &&
         std::ranges::all_of(manifest.files,
                             [&](const auto& file) { return matches(path, file.first, manifest); });
}

/// Leaves a file that is complete as it is: of a copy that was cut off, or has been damaged since.
void fetch_file(const data::RemoteFolder& remote,
                const std::string& file,
                const Manifest& manifest,
                const std::string& directory) {
  constexpr int kTries = 2;
  for (int i = 0; i < kTries; ++i) {
    if (matches(directory, file, manifest)) return;
    remote.get(place_of(manifest, file), directory + "/" + file);
  }
  if (matches(directory, file, manifest)) return;
  throw Error(ErrorCode::kCorrupt, remote.url_of(place_of(manifest, file)) +
                                       ": size or checksum of its content is not what the "
                                       "manifest says");
}

/// Throws as fetch_checkpoint, but offers no other one.
std::string copy_checkpoint(const data::RemoteFolder& remote, const std::string& folder) {
  const std::optional<std::string> json = remote.find_text(kManifestFile);
  if (!json || !holds(remote.list(""), kManifestFile, /*is_folder=*/false)) {
    throw Error(ErrorCode::kIo, concat("no checkpoint in '", remote.url(), "': it has no ",
                                       kManifestFile, ", which is written last"));
  }
  const Manifest manifest = Manifest::from_json(*json, remote.url());
  const std::vector<Entry> found = remote.list(manifest.folder);
  for (const auto& [file, ignored] : manifest.files) {
    if (holds(found, file, /*is_folder=*/false)) continue;
    throw Error(ErrorCode::kCorrupt, remote.url_of(place_of(manifest, file)) + ": missing");
  }
  const std::string name = last_part(remote.url()), path = folder + "/" + name;
  if (holds_checkpoint(path, *json, manifest)) return path;
  const std::string temporary = temporary_path(folder, name);
  if (std::filesystem::exists(path)) {
    satrap::remove_all(temporary);
    rename_atomic(path, temporary);
  }
  ensure_directory(temporary);
  for (const std::string& file : list_directory(temporary)) {
    if (!manifest.files.contains(file)) satrap::remove_all(temporary + "/" + file);
  }
  for (const auto& [file, ignored] : manifest.files) {
    fetch_file(remote, file, manifest, temporary);
  }
  write_file_atomic(temporary + "/" + kManifestFile, *json);
  replace_directory(temporary, path);
  log_info("checkpoint {} copied to {}", remote.url(), shown_path(path));
  return path;
}

/// For a message: which checkpoint there is in the store before a damaged one.
std::string offer_before(const std::string& url) {
  try {
    const RemoteCheckpoints all(url.substr(0, url.rfind('/')));
    std::vector<std::string> names = all.names();
    std::erase_if(names, [&](const std::string& name) { return name >= last_part(url); });
    if (names.empty()) return "; there is no earlier one in the store";
    return "; the one before it is " + all.url_of(names.back()) +
           " (--resume-from continues there)";
  } catch (const Error&) {
    return "";  // the damage is what counts
  }
}

}  // namespace

std::vector<std::string> RemoteCheckpoints::folders() const {
  std::vector<std::string> found;
  for (const Entry& entry : folder_.list("")) {
    if (entry.is_folder && step_of(entry.name)) found.push_back(entry.name);
  }
  return found;  // names sort by step
}

std::vector<std::string> RemoteCheckpoints::names() const {
  std::vector<std::string> found = folders();
  std::erase_if(found, [&](const std::string& name) {
    return !holds(folder_.list(name), kManifestFile, /*is_folder=*/false);
  });
  return found;
}

void RemoteCheckpoints::put(const std::string& directory,
                            const std::string& name,
                            const std::function<void()>& before_manifest) const {
  const std::string json = read_file(directory + "/" + kManifestFile);
  const Manifest manifest = Manifest::from_json(json, directory);
  for (const auto& [file, ignored] : manifest.files) {
    folder_.put(directory + "/" + file, name + "/" + place_of(manifest, file));
  }
  before_manifest();
  require_files(manifest, name);
  put_manifest(json, name);
}

void RemoteCheckpoints::require_files(const Manifest& manifest, const std::string& name) const {
  const std::string folder = manifest.folder.empty() ? name : name + "/" + manifest.folder;
  const std::vector<Entry> entries = folder_.list(folder);
  for (const auto& [file, ignored] : manifest.files) {
    if (holds(entries, file, /*is_folder=*/false)) continue;
    throw Error(ErrorCode::kIo, concat("'", url_of(name), "/", place_of(manifest, file),
                                       "' has been uploaded and is gone: something else removes "
                                       "files of this run"));
  }
}

std::optional<std::string> RemoteCheckpoints::find_manifest(const std::string& name) const {
  return folder_.find_text(manifest_of(name));
}

void RemoteCheckpoints::put_manifest(const std::string& json, const std::string& name) const {
  folder_.put_text(json, manifest_of(name));
}

void RemoteCheckpoints::set_newer_aside(std::int64_t step) const {
  for (const std::string& name : names()) {
    if (name <= checkpoint_name(step)) continue;
    const std::optional<std::string> manifest = find_manifest(name);
    if (!manifest) continue;
    folder_.put_text(*manifest, name + "/" + kAbandonedManifest);
    folder_.remove_file(manifest_of(name));
    log_warning(
        "checkpoint {} is later than step {}, from where the run continues: its manifest "
        "is renamed to {}",
        url_of(name), step, kAbandonedManifest);
  }
}

void RemoteCheckpoints::remove(const std::string& name) const {
  folder_.remove_file(manifest_of(name));
  folder_.remove_folder(name);
}

void RemoteCheckpoints::remove_oldest(std::int64_t keep, const std::string& best) const {
  std::vector<std::string> complete, others;
  for (const std::string& name : folders()) {
    const std::vector<Entry> entries = folder_.list(name);
    if (holds(entries, kManifestFile, /*is_folder=*/false)) {
      complete.push_back(name);
      for (const std::string& older : std::exchange(others, {})) remove(older);
    } else if (holds(entries, kAbandonedManifest, /*is_folder=*/false)) {
      remove(name);
    } else {
      others.push_back(name);
    }
  }
  for (std::int64_t i = 0; i + keep < std::ssize(complete); ++i) {
    const std::string& name = complete[static_cast<std::size_t>(i)];
    if (name != best) remove(name);
  }
}

void RemoteCheckpoints::remove_all() const {
  for (const std::string& name : folders()) remove(name);
}

std::vector<std::string> remote_checkpoint_urls(const std::string& text) {
  data::RemoteFolder folder(text);
  std::vector<Entry> entries = folder.list("");
  if (holds(entries, kManifestFile, /*is_folder=*/false)) return {folder.url()};
  if (holds(entries, "checkpoints", /*is_folder=*/true)) {
    folder = data::RemoteFolder(folder.url_of("checkpoints"));
  }
  const RemoteCheckpoints all(folder.url());
  std::vector<std::string> urls = all.names();
  for (std::string& name : urls) name = all.url_of(name);
  return urls;
}

std::string fetch_checkpoint(const std::string& url, const std::string& folder) {
  const data::RemoteFolder remote(url);
  try {
    return copy_checkpoint(remote, folder);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    throw Error(ErrorCode::kCorrupt, error.what() + offer_before(remote.url()));
  }
}

LocalCheckpoint::LocalCheckpoint(const std::string& path_or_url) : path_(path_or_url) {
  if (!data::is_url(path_or_url)) return;
  folder_.emplace();
  path_ = fetch_checkpoint(path_or_url, folder_->path());
}

}  // namespace satrap::checkpoint
