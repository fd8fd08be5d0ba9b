#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/data/remote_folder.h"
#include "satrap/job/scratch.h"

namespace satrap::checkpoint {

struct Manifest;

/// The checkpoints of a run in a store. A folder step-<12 digits> is one if it has a manifest,
/// which is written last and removed first: what was cut off is none. Other files are in the folder
/// that the manifest names: no two processes write the same file, even if both believe that the run
/// is theirs. All throw as RemoteFolder.
class RemoteCheckpoints {
 public:
  /// `url`: of the folder that holds them.
  explicit RemoteCheckpoints(const std::string& url) : folder_(url) {}

  /// Names of the complete ones, oldest first.
  std::vector<std::string> names() const;
  std::string url_of(const std::string& name) const { return folder_.url_of(name); }

  /// Uploads a complete one of this machine. Calls `before_manifest` when all but that is there;
  /// what it throws leaves no checkpoint. Throws Error(kIo) if files are gone by then.
  void put(const std::string& directory,
           const std::string& name,
           const std::function<void()>& before_manifest) const;

  /// The content of its manifest; nullopt: it is not complete.
  std::optional<std::string> find_manifest(const std::string& name) const;
  void put_manifest(const std::string& json, const std::string& name) const;

  /// Checkpoints of steps after `step` stop being checkpoints. Their files stay until the next
  /// remove_oldest(), the manifest as abandoned-manifest.json.
  void set_newer_aside(std::int64_t step) const;

  /// Removes the oldest until `keep` are left, but not `best` (a name; "": none). Of what is not
  /// complete only what was set aside, or is older than the newest: another may be uploading the
  /// next one.
  void remove_oldest(std::int64_t keep, const std::string& best) const;

  void remove_all() const;

 private:
  std::vector<std::string> folders() const;
  void require_files(const Manifest& manifest, const std::string& name) const;
  void remove(const std::string& name) const;

  data::RemoteFolder folder_;
};

/// As checkpoint_paths() for the URL of a checkpoint, a run or its checkpoints/.
std::vector<std::string> remote_checkpoint_urls(const std::string& url);

/// Copies a checkpoint from a store to `folder`, where it has the same name. Fetches only files
/// that are not there yet, or are damaged there: each is compared with its size and checksum.
/// Returns its path. Throws Error(kIo) if there is none, Error(kCorrupt) if the store lacks a file
/// of it or has another content, twice, than the manifest says; it then names the checkpoint before
/// it there.
std::string fetch_checkpoint(const std::string& url, const std::string& folder);

/// A checkpoint on this machine: of a path that itself, of a URL a copy in the scratch folder,
/// which is removed with this object.
class LocalCheckpoint {
 public:
  explicit LocalCheckpoint(const std::string& path_or_url);

  const std::string& path() const { return path_; }

 private:
  std::optional<job::ScratchFolder> folder_;  // of the copy
  std::string path_;
};

}  // namespace satrap::checkpoint
