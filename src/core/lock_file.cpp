#include "satrap/core/lock_file.h"

#include <cerrno>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace satrap {

int open_lock_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                        S_IRUSR | S_IWUSR);
  struct stat file = {}, folder = {};
  const std::string parent = std::filesystem::path(path).parent_path();
  const bool is_known = fd >= 0 && ::fstat(fd, &file) == 0 &&
                        ::stat(parent.empty() ? "." : parent.c_str(), &folder) == 0;
  if (!is_known) return fd;
  mode_t mode = S_IRUSR | S_IWUSR;
  if ((folder.st_mode & S_IWGRP) != 0) mode |= S_IRGRP | S_IWGRP;
  if ((folder.st_mode & S_IWOTH) != 0) mode |= S_IROTH | S_IWOTH;
  constexpr mode_t kAccess = S_IRWXU | S_IRWXG | S_IRWXO;
  if ((file.st_mode & kAccess) != mode) ::fchmod(fd, mode);  // not another user's
  return fd;
}

bool take_lock(int fd, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{5};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return false;
    if (std::chrono::steady_clock::now() >= deadline) {
      errno = EWOULDBLOCK;
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace satrap
