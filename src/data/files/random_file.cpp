#include "src/data/files/random_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "src/data/files/remote_file.h"

namespace satrap::data {
namespace {

/// Read at a time from a disk: a row group of Parquet, say, need not fit into memory.
constexpr std::int64_t kLocalPieceBytes = std::int64_t{256} << 10;

class LocalFile : public RandomFile {
 public:
  explicit LocalFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail("cannot open", errno);
    struct stat info{};
    if (::fstat(fd_, &info) == 0) size_ = info.st_size;
  }
  ~LocalFile() override { ::close(fd_); }
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;

  const std::string& name() const override { return path_; }
  std::int64_t size() const override { return size_; }
  std::int64_t piece_bytes() const override { return kLocalPieceBytes; }

  void read(std::int64_t begin, std::span<char> out) const override {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_, out.data(), out.size(), begin);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("cannot read", errno);
      if (n == 0) {
        throw Error(ErrorCode::kIo, concat("data file '", path_, "' has become shorter"));
      }
      out = out.subspan(static_cast<std::size_t>(n));
      begin += n;
    }
  }

 private:
  [[noreturn]] void fail(const char* what, int reason) const {
    throw Error(ErrorCode::kIo, concat(what, " data file '", path_, "': ", std::strerror(reason)));
  }

  const std::string path_;
  const int fd_;
  std::int64_t size_ = 0;
};

}  // namespace

std::shared_ptr<const RandomFile> open_random_file(const std::string& path,
                                                   std::function<bool()> is_cancelled) {
  if (is_remote(path)) return open_remote_file(path, std::move(is_cancelled));
  return std::make_shared<LocalFile>(path);
}

}  // namespace satrap::data
