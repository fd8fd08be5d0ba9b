#include "remote_export.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/core/file.h"

namespace satrap::app {
namespace {

constexpr const char* kDescription = "export.json";

}  // namespace

RemoteExport::RemoteExport(const std::string& url, bool overwrite) : remote_(url) {
  const auto found = remote_.list("");
  if (found.empty()) return;
  const bool is_export =
      std::ranges::find(found, kDescription, &data::RemoteFolder::Entry::name) != found.end();
  if (is_export && overwrite) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("--out: '", remote_.url(),
                     is_export ? "' holds an earlier export: replace it with --overwrite, or name "
                                 "another folder"
                               : "' holds files that are not an export; name another folder"));
}

void RemoteExport::upload() const {
  remote_.remove_file(kDescription);
  remote_.remove_folder("");
  for (const std::string& name : list_directory(local_path())) {
    if (name != kDescription) remote_.put(local_path() + "/" + name, name);
  }
  remote_.put(local_path() + "/" + kDescription, kDescription);
}

}  // namespace satrap::app
