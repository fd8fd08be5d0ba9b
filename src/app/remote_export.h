#pragma once

#include <string>

#include "satrap/data/remote_folder.h"
#include "satrap/job/scratch.h"

namespace satrap::app {

/// An export to a folder in a store: made on this machine, then uploaded, export.json last.
class RemoteExport {
 public:
  /// Throws Error(kInvalidConfig) if the folder holds something, unless it is an export and
  /// `overwrite`.
  RemoteExport(const std::string& url, bool overwrite);

  /// Where it is made.
  std::string local_path() const { return local_.path() + "/export"; }

  /// Replaces the export that is there. Throws Error(kIo); then export.json is not there.
  void upload() const;

 private:
  const data::RemoteFolder remote_;
  const job::ScratchFolder local_;
};

}  // namespace satrap::app
