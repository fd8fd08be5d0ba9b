#include "satrap/job/scratch.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/data/remote_folder.h"

namespace satrap::job {
namespace {

namespace fs = std::filesystem;

/// A folder that everybody can write to may have one of this name, or a link, of somebody else.
std::string own_temporary_folder() {
  const std::string path =
      (fs::temp_directory_path() / concat("satrap-", static_cast<std::int64_t>(::geteuid())))
          .string();
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    throw Error(ErrorCode::kIo, concat(path, ": cannot be created: ", std::strerror(errno),
                                       "; SATRAP_SCRATCH names another folder"));
  }
  struct stat status = {};
  const bool is_known = ::lstat(path.c_str(), &status) == 0;
  if (!is_known || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(path,
                       ": is not a folder that only this user can write to; remove it, or "
                       "name another one with SATRAP_SCRATCH"));
  }
  return path;
}

}  // namespace

std::string scratch_folder() {
  const char* const named = std::getenv("SATRAP_SCRATCH");
  if (named == nullptr || *named == '\0') return own_temporary_folder();
  const std::string path = fs::absolute(named).lexically_normal().string();
  ensure_directory(path);
  return path;
}

ScratchFolder::ScratchFolder() : path_(scratch_folder() + "/copy-XXXXXX") {
  if (::mkdtemp(path_.data()) != nullptr) return;
  throw Error(ErrorCode::kIo, concat(path_, ": cannot be created: ", std::strerror(errno)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string local_run_dir(const JobConfig& config) {
  if (!data::is_url(config.run_dir)) return config.run_dir;
  const std::string url = data::RemoteFolder(config.run_dir).url();
  const std::string name = url.substr(url.rfind('/') + 1);
  return concat(scratch_folder(), "/", to_hex(hash_bytes(url)), "/", name);
}

}  // namespace satrap::job
