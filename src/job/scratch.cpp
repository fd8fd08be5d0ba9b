#include "satrap/job/scratch.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/core/lock_file.h"
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

/// A file that is locked (flock) as long as this object lives.
class LockedFile {
 public:
  LockedFile(const std::string& path, std::chrono::milliseconds patience)
      : fd_(open_lock_file(path)), is_locked_(fd_ >= 0 && take_lock(fd_, patience)) {}
  ~LockedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool is_locked() const { return is_locked_; }

 private:
  const int fd_;
  const bool is_locked_;
};

/// The names of copies of this machine up to where they differ: another one may share the folder
/// and not see this one's locks.
std::string copy_prefix() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return "copy-";
  return concat("copy-", host.data(), "-");
}
constexpr std::chrono::milliseconds kAtOnce{0};
constexpr const char* kRandomPart = "XXXXXX";  // of mkdtemp

/// Removes copies of processes of this machine that were killed.
void remove_left_copies(const std::string& scratch, const std::string& prefix) {
  for (const std::string& name : list_directory(scratch)) {
    if (!name.starts_with(prefix) || name.size() != prefix.size() + std::strlen(kRandomPart)) {
      continue;
    }
    const std::string path = concat(scratch, "/", name);
    const LockedFile lock(path + "/.lock", kAtOnce);
    std::error_code ignored;
    if (lock.is_locked()) fs::remove_all(path, ignored);
  }
}

}  // namespace

std::string scratch_folder() {
  const char* const named = std::getenv("SATRAP_SCRATCH");
  if (named == nullptr || *named == '\0') return own_temporary_folder();
  const std::string path = fs::absolute(named).lexically_normal().string();
  ensure_directory(path);
  return path;
}

class ScratchFolder::Lock : public LockedFile {
  using LockedFile::LockedFile;
};

ScratchFolder::ScratchFolder() {
  const std::string scratch = scratch_folder(), prefix = copy_prefix();
  // So that nobody takes a new folder, which has no lock yet, for one that was left.
  const LockedFile one_at_a_time(scratch + "/.copies.lock", std::chrono::seconds(10));
  if (one_at_a_time.is_locked()) remove_left_copies(scratch, prefix);
  path_ = concat(scratch, "/", prefix, kRandomPart);
  if (::mkdtemp(path_.data()) == nullptr) {
    throw Error(ErrorCode::kIo, concat(path_, ": cannot be created: ", std::strerror(errno)));
  }
  lock_ = std::make_unique<Lock>(path_ + "/.lock", kAtOnce);
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
