#include "src/data/row_cache_space.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
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
#include "satrap/core/log.h"
#include "satrap/core/text.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kReservationsOfAll = 64;  // so that few of them look at the folder

/// A cache in the folder, or an unfinished one.
struct FolderEntry {
  std::string path;
  std::int64_t bytes = 0;
  std::int64_t used_ns = 0;  // 0: serves nobody, or soon will not
};

/// All but the unfinished cache of `path`; the one that goes first comes first.
std::vector<FolderEntry> entries_but(const std::string& folder, const std::string& path) {
  std::vector<FolderEntry> entries;
  std::error_code ended;
  for (std::filesystem::directory_iterator it(folder, ended), end; it != end && !ended;
       it.increment(ended)) {
    std::string name = it->path().string();
    struct stat status = {};
    const bool is_part = name.ends_with(".rows.part");
    if (!(is_part || name.ends_with(".rows")) || name == part_of_cache(path) ||
        ::lstat(name.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    const std::int64_t used_ns =
        is_part || name == path
            ? 0
            : std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    entries.push_back({.path = std::move(name), .bytes = status.st_size, .used_ns = used_ns});
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

/// False: a process uses it, or it must stay for another reason.
bool remove_unused(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool is_removed = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::unlink(path.c_str()) == 0;
  ::close(fd);
  return is_removed;
}

/// Removes entries until those that are left have at most `bytes`; how many they have then.
std::int64_t remove_until(std::int64_t bytes, const std::vector<FolderEntry>& entries) {
  std::int64_t total = total_of(entries);
  for (const FolderEntry& entry : entries) {
    if (total <= bytes) break;
    if (!remove_unused(entry.path)) continue;
    total -= entry.bytes;
    log_info("data.cache: '{}' ({}) is removed to make room", shown_path(entry.path),
             format_bytes(entry.bytes));
  }
  return total;
}

}  // namespace

std::string part_of_cache(const std::string& path) { return path + ".part"; }

RowCacheSpace::Lock::Lock(const std::string& folder)
    : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

RowCacheSpace::Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

RowCacheSpace::RowCacheSpace(std::string folder,
                             std::int64_t max_bytes,
                             std::shared_ptr<CacheRefusals> refusals)
    : folder_(std::move(folder)), max_bytes_(max_bytes), refusals_(std::move(refusals)) {}

std::int64_t RowCacheSpace::reserve(const std::string& path,
                                    int fd,
                                    std::int64_t bytes,
                                    std::int64_t expected) const {
  if (max_bytes_ == 0) return INT64_MAX;
  const Lock lock(folder_);
  const std::vector<FolderEntry> others = entries_but(folder_, path);
  std::int64_t taken = total_of(others);
  const std::int64_t needed = std::max(bytes, expected);
  if (needed <= max_bytes_ && taken + bytes > max_bytes_) {
    taken = remove_until(max_bytes_ - bytes, others);
  }
  if (taken + bytes > max_bytes_) {
    refusals_->add(path);
    const std::string need =
        needed > max_bytes_
            ? concat("about ", format_bytes(needed))
            : concat("more than the ", format_bytes(std::max<std::int64_t>(0, max_bytes_ - taken)),
                     " that caches in use leave");
    throw Error(ErrorCode::kIo,
                concat("they need ", need, ", and data.cache.max_size allows all caches in '",
                       shown_path(folder_), "' ", format_bytes(max_bytes_)));
  }
  const std::int64_t size = std::min(bytes + max_bytes_ / kReservationsOfAll, max_bytes_ - taken);
  if (::ftruncate(fd, size) != 0) {
    throw Error(ErrorCode::kIo,
                concat("cannot extend '", part_of_cache(path), "': ", std::strerror(errno)));
  }
  return size;
}

void RowCacheSpace::trim() const {
  if (max_bytes_ == 0) return;
  const Lock lock(folder_);
  remove_until(max_bytes_, entries_but(folder_, ""));
}

}  // namespace satrap::data
