#include "src/data/files/raw_input.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "src/data/files/read_ahead.h"
#include "src/data/files/remote_file.h"

namespace satrap::data {
namespace {

constexpr std::size_t kHeadBytes = 8;
constexpr int kPollMs = 100;  // longest wait of an interrupted reader of a pipe

/// An open file descriptor.
class LocalInput : public RawInput {
 public:
  LocalInput(const std::string& path,
             std::atomic<std::int64_t>& bytes_read,
             Interruption& interruption)
      : RawInput(path == "-" ? "standard input" : path, bytes_read, interruption) {
    // O_NONBLOCK: a named pipe is opened before its writer has come.
    fd_ = path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                      : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd_ < 0) fail("cannot open");
    struct stat info{};
    if (::fstat(fd_, &info) != 0) fail("cannot examine");
    if (S_ISDIR(info.st_mode)) {
      ::close(fd_);
      throw Error(ErrorCode::kIo, concat("'", name_, "' is a directory, not a file"));
    }
    regular_ = S_ISREG(info.st_mode);
    // Standard input may be a file from which something has been read.
    if (regular_ && path != "-") size_ = info.st_size;
    if (regular_) ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~LocalInput() override { ::close(fd_); }

 private:
  std::size_t read_next(char* out, std::size_t size) override {
    while (true) {
      if (!regular_ && !wait_for_input()) return 0;
      const ssize_t n = ::read(fd_, out, size);
      if (n >= 0) {
        position_ += n;
        if (n == 0 && size > 0 && regular_) check_size();
        return static_cast<std::size_t>(n);
      }
      // EAGAIN: another reader of the pipe was faster.
      if (errno != EINTR && errno != EAGAIN) fail("cannot read");
    }
  }

  /// A file may have grown since it was opened. One that has shrunk ended within a row, or lost
  /// some.
  void check_size() const {
    if (position_ >= size_) return;
    throw Error(ErrorCode::kIo,
                concat("'", name_, "' has become shorter while it was read: it ended after ",
                       position_, " of ", size_, " bytes"));
  }

  /// Returns false if the wait was interrupted.
  bool wait_for_input() {
    while (!interruption_.ends_pipe()) {
      pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
      const int ready = ::poll(&waiting, 1, kPollMs);
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) fail("cannot wait for");
    }
    return false;
  }

  [[noreturn]] void fail(const char* what) {
    const int reason = errno;
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    throw Error(ErrorCode::kIo, concat(what, " '", name_, "': ", std::strerror(reason)));
  }

  int fd_ = -1;
  bool regular_ = false;
  off_t size_ = 0;  // of a regular file when it was opened
  off_t position_ = 0;
};

/// A file in a store, read ahead of time.
class RemoteInput : public RawInput {
 public:
  RemoteInput(const std::string& url,
              std::atomic<std::int64_t>& bytes_read,
              Interruption& interruption)
      : RawInput(url, bytes_read, interruption),
        pieces_(open_remote_file(url, [this] { return is_closed_ || is_cancelled(); })) {}
  ~RemoteInput() override { is_closed_ = true; }

 private:
  std::size_t read_next(char* out, std::size_t size) override {
    if (is_cancelled()) return 0;
    try {
      return pieces_.read(out, size);
    } catch (const Error&) {
      if (is_cancelled()) return 0;  // which is why it was not tried again
      throw;
    }
  }

  std::atomic<bool> is_closed_{false};  // the threads of pieces_ ask
  ReadAhead pieces_;
};

}  // namespace

std::string_view RawInput::peek() {
  while (head_.size() < kHeadBytes) {
    char buffer[kHeadBytes];
    const std::size_t n = read_counted(buffer, kHeadBytes - head_.size());
    if (n == 0) break;
    head_.append(buffer, n);
  }
  return head_;
}

std::size_t RawInput::read(char* out, std::size_t size) {
  if (head_given_ == head_.size()) return read_counted(out, size);
  const std::size_t n = std::min(size, head_.size() - head_given_);
  std::memcpy(out, head_.data() + head_given_, n);
  head_given_ += n;
  return n;
}

std::size_t RawInput::read_counted(char* out, std::size_t size) {
  const std::size_t n = read_next(out, size);
  bytes_read_.fetch_add(static_cast<std::int64_t>(n), std::memory_order_relaxed);
  return n;
}

std::unique_ptr<RawInput> open_raw_input(const std::string& path,
                                         std::atomic<std::int64_t>& bytes_read,
                                         Interruption& interruption) {
  if (is_remote(path)) return std::make_unique<RemoteInput>(path, bytes_read, interruption);
  return std::make_unique<LocalInput>(path, bytes_read, interruption);
}

}  // namespace satrap::data
