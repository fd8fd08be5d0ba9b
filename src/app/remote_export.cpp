#include "src/app/remote_export.h"

#include <algorithm>
#include <string>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/file.h"

namespace satrap::app {
namespace {

constexpr const char* kDescription = "export.json";
constexpr const char* kIncomplete = "export-incomplete.json";  // while it is uploaded

}  // namespace

RemoteExport::RemoteExport(const std::string& url, bool overwrite) : remote_(url) {
  const auto found = remote_.list("");
  bool is_export = false, is_incomplete = false;
  for (const auto& entry : found) {
    is_export |= entry.name == kDescription;
    is_incomplete |= entry.name.ends_with(kIncomplete);  // in HDFS begun with ".tmp-"
  }
  if (found.empty() || (is_export ? overwrite : is_incomplete)) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("--out: '", remote_.url(),
                     is_export ? "' holds an earlier export: replace it with --overwrite, or name "
                                 "another folder"
                               : "' holds files that are not an export; name another folder"));
}

void RemoteExport::upload() const {
  remote_.put_text("{}\n", kIncomplete);
  remote_.remove_file(kDescription);
  const std::vector<std::string> names = list_directory(local_path());
  for (const std::string& name : names) {
    if (name != kDescription) remote_.put(local_path() + "/" + name, name);
  }
  // One by one: to remove a folder takes a right to write to the one that holds it.
  for (const auto& [name, is_folder] : remote_.list("")) {
    if (name == kIncomplete || std::ranges::find(names, name) != names.end()) continue;
    if (is_folder) {
      remote_.remove_folder(name);
    } else {
      remote_.remove_file(name);
    }
  }
  remote_.put(local_path() + "/" + kDescription, kDescription);
  remote_.remove_file(kIncomplete);
}

}  // namespace satrap::app
