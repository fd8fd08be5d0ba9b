#include "satrap/data/data_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/data/topic.h"
#include "src/data/file_list.h"

namespace satrap::data {
namespace {

/// An open file that is read at given places.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail("cannot open", errno);
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void append(std::int64_t begin, std::int64_t end, std::string& out) const {
    for (std::size_t at = out.size(), last = at + static_cast<std::size_t>(end - begin);
         at < last;) {
      out.resize(last);
      const ssize_t n = ::pread(fd_, out.data() + at, last - at, begin);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("cannot read", errno);
      if (n == 0) throw Error(ErrorCode::kIo, concat("data file '", path_, "' has become shorter"));
      at += static_cast<std::size_t>(n);
      begin += n;
    }
  }

 private:
  [[noreturn]] void fail(const char* what, int reason) const {
    throw Error(ErrorCode::kIo, concat(what, " data file '", path_, "': ", std::strerror(reason)));
  }

  const std::string& path_;
  const int fd_;
};

bool is_compressed(std::string_view head) {
  return head.starts_with("\x1F\x8B") || head.starts_with("\x28\xB5\x2F\xFD") ||
         (head.size() >= 4 && head.substr(1, 3) == "\x2A\x4D\x18");  // a skippable frame of zstd
}

}  // namespace

FilePrefix examine_prefix(const std::string& path, std::int64_t bytes) {
  const OpenFile file(path);
  std::string text;
  const std::int64_t head = std::min(bytes, kChecksumBytes);
  file.append(0, head, text);
  file.append(std::max(head, bytes - kChecksumBytes), bytes, text);
  return {to_hex(hash_bytes(text)), is_compressed(text) || text.ends_with('\n')};
}

std::vector<DataFile> without_folder(std::vector<DataFile> files, const std::string& folder) {
  for (DataFile& file : files) file.path = satrap::without_folder(file.path, folder);
  return files;
}

std::vector<DataFile> list_training_files(const DataConfig& config) {
  if (config.resolved_format() == "synthetic" || reads_topic(config)) return {};
  return without_folder(list_files(config.train.path).files, config.folder);
}

}  // namespace satrap::data
