#include "src/prepare/folder_lock.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/file.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/lock_file.h"
#include "satrap/core/log.h"

namespace satrap::prepare {
namespace {

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return concat("process ", ::getpid());
  return concat("process ", ::getpid(), " on ", host.data());
}

/// Replaces the content of the file, which stays the one that is locked.
bool write_content(int fd, const std::string& text) {
  return ::ftruncate(fd, 0) == 0 &&
         ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/" + kFile;
  fd_ = open_lock_file(path);
  if (fd_ < 0) {
    throw Error(ErrorCode::kIo, concat(path, ": cannot be opened: ", std::strerror(errno)));
  }
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    const std::string holder = read_file(path);
    throw Error(ErrorCode::kInvalidConfig, concat("--out: ", folder, " is in use by ",
                                                  holder.empty() ? "another preparation" : holder,
                                                  "; wait for its end, or name another folder"));
  }
  if (!write_content(fd_, this_process())) {
    const int error = errno;
    ::close(fd_);
    throw Error(ErrorCode::kIo, concat(path, ": cannot be written: ", std::strerror(error)));
  }
}

FolderLock::~FolderLock() {
  if (!write_content(fd_, "")) log_info("{} cannot be emptied: {}", kFile, std::strerror(errno));
  ::close(fd_);
}

}  // namespace satrap::prepare
