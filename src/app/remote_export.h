#pragma once

#include <string>

#include "satrap/data/remote_folder.h"
#include "satrap/job/scratch.h"

namespace satrap::app {

/// An export to a folder in a store: made on this machine, then uploaded. From its first file on
/// the folder holds export-incomplete.json, which is removed once export.json is there: what was
/// cut off can be repeated.
class RemoteExport {
 public:
  /// Throws Error(kInvalidConfig) if the folder holds something, unless it is an incomplete export,
  /// or an export and `overwrite`.
  RemoteExport(const std::string& url, bool overwrite);

  /// The folder in which the export is made.
  std::string local_path() const { return local_.path() + "/export"; }

  /// Replaces the export that is there. Writes only to the folder and below. Throws Error(kIo).
  void upload() const;

 private:
  const data::RemoteFolder remote_;
  const job::ScratchFolder local_;
};

}  // namespace satrap::app
