#include "satrap/net/file_rendezvous.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/net/net_error.h"
#include "src/net/counter.h"
#include "src/net/socket.h"

namespace satrap::net {
namespace {

// A file name for any key: bytes other than letters, digits and "-_" become %XX.
std::string file_name(const std::string& key) {
  SATRAP_CHECK(!key.empty() && static_cast<std::int64_t>(key.size()) <= Rendezvous::kMaxKeyBytes,
               "store key of ", key.size(), " bytes: ", key);
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string name;
  for (const char c : key) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') {
      name += c;
    } else {
      name += '%';
      name += kDigits[static_cast<unsigned char>(c) >> 4];
      name += kDigits[static_cast<unsigned char>(c) & 15];
    }
  }
  // For long keys: names in a folder are limited to 255 bytes.
  constexpr std::size_t kMaxName = 200;
  std::string path;
  for (std::size_t begin = 0; begin < name.size(); begin += kMaxName) {
    if (begin > 0) path += "+/";
    path += name.substr(begin, kMaxName);
  }
  return path;
}

// Holds the lock while it lives: other processes and threads that lock the same file wait.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : fd_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (!fd_ || flock(fd_.get(), LOCK_EX) != 0) {
      throw Error(ErrorCode::kIo, concat("cannot lock ", path, ": ", std::strerror(errno)));
    }
  }

 private:
  Fd fd_;
};

}  // namespace

FileRendezvous::FileRendezvous(const std::string& directory) : directory_(directory) {
  std::error_code failed;
  if (std::filesystem::create_directories(directory, failed)) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, failed);
  }
  if (failed) {
    throw Error(ErrorCode::kIo, concat("store ", directory, ": ", failed.message()));
  }
}

std::string FileRendezvous::path_of(const std::string& key) const {
  return directory_ + "/" + file_name(key);
}

void FileRendezvous::set(const std::string& key, const std::string& value) {
  SATRAP_CHECK(static_cast<std::int64_t>(value.size()) <= kMaxValueBytes, "store value of '", key,
               "' has ", value.size(), " bytes");
  const std::string path = path_of(key);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::string temporary = path + ".XXXXXX";
  const Fd fd(mkostemp(temporary.data(), O_CLOEXEC));
  const ssize_t written = fd ? write(fd.get(), value.data(), value.size()) : -1;
  if (written != static_cast<ssize_t>(value.size()) ||
      rename(temporary.c_str(), path.c_str()) != 0) {
    throw Error(ErrorCode::kIo, concat("cannot write ", path, ": ", std::strerror(errno)));
  }
}

std::optional<std::string> FileRendezvous::get(const std::string& key) {
  std::ifstream file(path_of(key), std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

std::string FileRendezvous::wait(const std::string& key, Deadline deadline) {
  constexpr auto kPoll = std::chrono::milliseconds(2);
  for (;;) {
    if (std::optional<std::string> value = get(key)) return *value;
    if (deadline.has_passed()) {
      throw NetError(NetFailure::kTimeout,
                     concat("nobody has set '", key, "' in store ", directory_));
    }
    pause_before_retry(kPoll, deadline);
  }
}

std::int64_t FileRendezvous::add(const std::string& key, std::int64_t amount) {
  const FileLock lock(directory_ + "/.lock");
  const std::int64_t sum = counter_after(get(key).value_or("0"), amount);
  set(key, std::to_string(sum));
  return sum;
}

void FileRendezvous::erase(const std::string& key) {
  std::error_code ignored;
  std::filesystem::remove(path_of(key), ignored);
}

}  // namespace satrap::net
