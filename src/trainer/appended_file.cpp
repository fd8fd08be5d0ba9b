#include "src/trainer/appended_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/log.h"

namespace satrap::trainer {

AppendedFile::AppendedFile(std::string path)
    : path_(std::move(path)),
      fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (fd_ < 0) {
    throw Error(ErrorCode::kIo,
                concat(path_, ": cannot be opened for writing: ", std::strerror(errno)));
  }
  struct stat status = {};
  if (::fstat(fd_, &status) == 0) size_ = status.st_size;
}

AppendedFile::~AppendedFile() { ::close(fd_); }

void AppendedFile::append(std::string_view piece) {
  constexpr std::size_t kMostWaiting = std::size_t{16} << 20;
  waiting_ += piece;
  if (write_waiting()) {
    is_told_ = false;
    return;
  }
  const int reason = errno;
  if (waiting_.size() > kMostWaiting) fail(reason);
  if (!is_told_) {
    log_warning("{}: cannot be written: {}; what is missing is written with what comes next", path_,
                std::strerror(reason));
  }
  is_told_ = true;
}

void AppendedFile::finish() {
  if (!write_waiting()) fail(errno);
}

/// False with errno: the file is as it was before.
bool AppendedFile::write_waiting() {
  for (std::size_t at = 0; at < waiting_.size();) {
    const ssize_t n = ::write(fd_, waiting_.data() + at, waiting_.size() - at);
    if (n >= 0) {
      at += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      const int reason = errno;
      const bool is_cut = at == 0 || ::ftruncate(fd_, size_) == 0;
      if (!is_cut) fail(reason);  // a piece in part would come twice
      errno = reason;
      return false;
    }
  }
  size_ += std::ssize(waiting_);
  waiting_.clear();
  return true;
}

void AppendedFile::fail(int reason) const {
  throw Error(ErrorCode::kIo, concat(path_, ": cannot be written: ", std::strerror(reason)));
}

}  // namespace satrap::trainer
