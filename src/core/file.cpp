#include "satrap/core/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

[[noreturn]] void fail_io(const std::string& path, const char* what, int error) {
  throw Error(ErrorCode::kIo, concat(path, ": ", what, ": ", std::strerror(error)));
}

// Closes its descriptor at the end of the scope, where an error cannot be reported any more.
class ScopedFd {
 public:
  explicit ScopedFd(int fd) : fd_(fd) {}
  ~ScopedFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// fsync; files with nothing to sync (pipes, devices, some network folders) give EINVAL.
int sync_fd(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : -1; }

std::string parent_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// 0, or the error of creating a file in `path`. (Permission bits alone do not decide: root,
// read-only mounts, quotas.)
int probe_directory(const std::string& path) {
  std::string name = (path.empty() ? "." : path) + "/.satrap-probe-XXXXXX";
  const ScopedFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) return errno;
  ::unlink(name.c_str());
  return 0;
}

}  // namespace

std::string without_folder(const std::string& path, const std::string& folder) {
  const std::string beginning = folder + "/";
  const bool is_in_it = path.size() > beginning.size() && path.starts_with(beginning);
  return folder.empty() || !is_in_it ? path : path.substr(beginning.size());
}

bool is_relative_path(const std::string& path) {
  const bool is_url = path.find("://") != std::string::npos;
  return !path.empty() && path != "-" && !path.starts_with('~') && !is_url &&
         fs::path(path).is_relative();
}

std::string shown_path(const std::string& path) {
  std::error_code unknown;
  return without_folder(path, fs::current_path(unknown).string());
}

// ------------------------------------------------------------------------------------- FileWriter

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  buffer_.reserve(kBufferBytes);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot be created");
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void FileWriter::fail(const char* what) const { fail_io(path_, what, errno); }

void FileWriter::write(std::span<const std::byte> bytes) {
  SATRAP_CHECK(fd_ >= 0, path_, ": write after finish");
  hash_.update(bytes);
  bytes_written_ += static_cast<std::int64_t>(bytes.size());
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    write_through(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void FileWriter::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void FileWriter::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void FileWriter::finish() {
  SATRAP_CHECK(fd_ >= 0, path_, ": finished twice");
  flush();
  if (sync_fd(fd_) != 0) fail("cannot be synced to disk");
  // Some file systems report a full disk only here.
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be closed");
}

// ------------------------------------------------------------------------------------- FileReader

FileReader::FileReader(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) fail_io(path_, "cannot be opened", errno);
  struct stat status = {};
  if (::fstat(fd_, &status) != 0 || S_ISDIR(status.st_mode)) {
    const int error = S_ISDIR(status.st_mode) ? EISDIR : errno;
    ::close(fd_);
    fail_io(path_, "cannot be read", error);
  }
  size_ = status.st_size;
}

FileReader::~FileReader() { ::close(fd_); }

void FileReader::read(std::span<std::byte> bytes) {
  for (std::span<std::byte> rest = bytes; !rest.empty();) {
    const std::size_t count = read_some(rest);
    if (count == 0) {
      throw Error(
          ErrorCode::kCorrupt,
          concat(path_, ": truncated: ", bytes.size(), " bytes needed at offset ", bytes_read_,
                 ", but the file ends after ", bytes.size() - rest.size(), " of them"));
    }
    rest = rest.subspan(count);
  }
  bytes_read_ += static_cast<std::int64_t>(bytes.size());
  hash_.update(bytes);
}

std::size_t FileReader::read_some(std::span<std::byte> bytes) {
  const auto read_fd = [&](std::span<std::byte> into) {
    ssize_t count;
    do {
      count = ::read(fd_, into.data(), into.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) fail_io(path_, "cannot be read", errno);
    return static_cast<std::size_t>(count);
  };
  if (buffer_begin_ == buffer_end_) {
    if (bytes.size() >= kBufferBytes) return read_fd(bytes);
    buffer_.resize(kBufferBytes);
    buffer_begin_ = 0;
    buffer_end_ = read_fd(buffer_);
  }
  const std::size_t count = std::min(bytes.size(), buffer_end_ - buffer_begin_);
  std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(buffer_begin_), count, bytes.begin());
  buffer_begin_ += count;
  return count;
}

// ------------------------------------------------------------------------------ files and folders

std::string read_file(const std::string& path) {
  FileReader reader(path);
  std::string content(static_cast<std::size_t>(reader.size()), '\0');
  reader.read(std::as_writable_bytes(std::span(content)));
  return content;
}

void write_file_atomic(const std::string& path, std::string_view content) {
  const std::string temporary = concat(path, ".tmp-", ::getpid());
  try {
    FileWriter writer(temporary);
    writer.write(content);
    writer.finish();
    rename_atomic(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void rename_atomic(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    fail_io(from, concat("cannot be renamed to ", to).c_str(), errno);
  }
  fsync_directory(parent_of(to));
}

void replace_directory(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == EINVAL) remove_all(to);  // a file system that cannot exchange, such as NFS
    rename_atomic(from, to);
    return;
  }
  fsync_directory(parent_of(to));
  remove_all(from);  // now the older one
}

void fsync_directory(const std::string& path) {
  const ScopedFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) fail_io(path, "cannot be opened", errno);
  if (sync_fd(directory.get()) != 0) fail_io(path, "cannot be synced to disk", errno);
}

void remove_all(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_io(path, "cannot be removed", error.value());
}

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) fail_io(path, "cannot be listed", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

void ensure_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path.empty() ? "." : path, error);
  if (error) fail_io(path, "cannot be made a directory", error.value());
  const int probe_error = probe_directory(path);
  if (probe_error != 0) fail_io(path, "directory cannot be written to", probe_error);
}

bool is_writable_directory(const std::string& path) { return probe_directory(path) == 0; }

std::int64_t free_bytes(const std::string& path) {
  fs::path existing = fs::absolute(path);
  std::error_code missing;
  while (!fs::exists(existing, missing) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  std::error_code error;
  const fs::space_info space = fs::space(existing, error);
  if (error) fail_io(path, "free space is unknown", error.value());
  return static_cast<std::int64_t>(space.available);
}

}  // namespace satrap
