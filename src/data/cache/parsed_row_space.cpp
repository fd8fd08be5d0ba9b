#include "src/data/cache/parsed_row_space.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/lock_file.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kReservationsOfAll = 64;  // so that few of them look at the folder

/// Whether a file is a cache, or an unfinished one: other files of the folder are not ours.
bool is_cache(std::string_view name) {
  constexpr std::size_t kHash = 1 + 16;  // as to_hex writes it
  constexpr std::string_view kPart = ".part", kRows = ".rows";
  if (name.ends_with(kPart)) name.remove_suffix(kPart.size());
  if (!name.ends_with(kRows) || name.size() <= kHash + kRows.size()) return false;
  const std::string_view hash = name.substr(name.size() - kHash - kRows.size(), kHash);
  return hash.front() == '-' &&
         hash.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

/// A cache in the folder, or an unfinished one.
struct FolderEntry {
  std::string path;
  std::int64_t bytes = 0;
  std::int64_t used_ns = 0;  // 0: serves nobody, or soon will not
};

/// All but the unfinished cache of `path`; the one that goes first comes first.
std::vector<FolderEntry> entries_but(const std::string& folder, const std::string& path) {
  const std::string own = std::filesystem::path(path).filename().string();
  std::vector<FolderEntry> entries;
  std::error_code ended;
  for (std::filesystem::directory_iterator it(folder, ended), end; it != end && !ended;
       it.increment(ended)) {
    const std::string name = it->path().filename().string();
    struct stat status = {};
    if (!is_cache(name) || name == part_of_cache(own) ||
        ::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    const std::int64_t used_ns =
        name.ends_with(".part") || name == own
            ? 0
            : std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    entries.push_back({.path = it->path().string(), .bytes = status.st_size, .used_ns = used_ns});
  }
  std::ranges::sort(entries, {},
                    [](const FolderEntry& entry) { return std::tie(entry.used_ns, entry.path); });
  return entries;
}

std::int64_t total_of(const std::vector<FolderEntry>& entries) {
  std::int64_t total = 0;
  for (const FolderEntry& entry : entries) total += entry.bytes;
  return total;
}

/// Calls use() unless a process uses the cache, or it cannot be opened. Whether it has, with
/// success.
template <class Use>
bool if_unused(const std::string& path, const Use& use) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool is_done = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && use();
  ::close(fd);
  return is_done;
}

/// The bytes of those that cannot make room.
std::int64_t bytes_in_use(const std::vector<FolderEntry>& entries) {
  std::int64_t total = 0;
  for (const FolderEntry& entry : entries) {
    if (!if_unused(entry.path, [] { return true; })) total += entry.bytes;
  }
  return total;
}

/// Removes entries until those that are left have at most `bytes`; how many they have then.
std::int64_t remove_until(std::int64_t bytes, const std::vector<FolderEntry>& entries) {
  std::int64_t total = total_of(entries);
  for (const FolderEntry& entry : entries) {
    if (total <= bytes) break;
    if (!if_unused(entry.path, [&] { return ::unlink(entry.path.c_str()) == 0; })) continue;
    total -= entry.bytes;
    log_info("data.cache: '{}' ({}) is removed to make room", shown_path(entry.path),
             format_bytes(entry.bytes));
  }
  return total;
}

}  // namespace

std::string part_of_cache(const std::string& path) { return path + ".part"; }

ParsedRowSpace::Lock::Lock(const std::string& folder, std::chrono::milliseconds patience)
    : fd_(open_lock_file(folder + "/.lock")) {
  is_others_ = fd_ >= 0 && !take_lock(fd_, patience) && errno == EWOULDBLOCK;
}

ParsedRowSpace::Lock::Lock(const ParsedRowSpace& space, const std::string& path)
    : Lock(space.folder_, space.patience_) {
  if (!is_others_) return;
  space.caches_->refuse(path);
  throw Error(
      ErrorCode::kIo,
      concat("another process has kept '", shown_path(space.folder_ + "/.lock"), "' locked for ",
             space.patience_.count(), " ms; `fuser` names it, and it must end, or the file go"));
}

ParsedRowSpace::Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

ParsedRowSpace::ParsedRowSpace(std::string folder,
                               std::int64_t max_bytes,
                               std::shared_ptr<JobCaches> caches,
                               std::chrono::milliseconds patience)
    : folder_(std::move(folder)),
      max_bytes_(max_bytes),
      caches_(std::move(caches)),
      patience_(patience) {}

std::int64_t ParsedRowSpace::reserve(const std::string& path,
                                     int fd,
                                     std::int64_t bytes,
                                     std::int64_t expected) const {
  if (max_bytes_ == 0) return INT64_MAX;
  const Lock lock(*this, path);
  const std::vector<FolderEntry> others = entries_but(folder_, path);
  std::int64_t taken = total_of(others);
  const std::int64_t needed = std::max(bytes, expected);
  if (taken + bytes > max_bytes_) {
    const std::int64_t in_use = bytes_in_use(others);
    if (needed <= max_bytes_ - in_use) taken = remove_until(max_bytes_ - bytes, others);
    if (taken + bytes > max_bytes_) refuse(path, needed, in_use);
  }
  const std::int64_t size = std::min(bytes + max_bytes_ / kReservationsOfAll, max_bytes_ - taken);
  if (::ftruncate(fd, size) != 0) {
    throw Error(ErrorCode::kIo,
                concat("cannot extend '", part_of_cache(path), "': ", std::strerror(errno)));
  }
  return size;
}

void ParsedRowSpace::refuse(const std::string& path,
                            std::int64_t needed,
                            std::int64_t in_use) const {
  caches_->refuse(path);
  const std::string used =
      in_use == 0 ? "" : concat(", of which ", format_bytes(in_use), " are in use");
  throw Error(ErrorCode::kIo, concat("they need about ", format_bytes(needed),
                                     ", and data.cache.max_size allows all caches in '",
                                     shown_path(folder_), "' ", format_bytes(max_bytes_), used));
}

void ParsedRowSpace::trim() const {
  if (max_bytes_ == 0) return;
  const Lock lock(folder_, std::chrono::milliseconds(0));
  if (lock.is_others()) return;
  remove_until(max_bytes_, entries_but(folder_, ""));
}

}  // namespace satrap::data
