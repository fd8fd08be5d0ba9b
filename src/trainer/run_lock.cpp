#include "src/trainer/run_lock.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/lock_file.h"
#include "satrap/core/log.h"
#include "satrap/core/thread_group.h"

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Differs after every start of a kernel.
std::string this_machine() {
  std::string id = content_of("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "an unknown host";
}

/// When a process started, in ticks since its kernel did; "" if there is none of that number here.
std::string start_of(std::int64_t pid) {
  const std::string stat = content_of(fmt::format("/proc/{}/stat", pid));
  const auto name_end = stat.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos) return "";
  std::string_view rest = std::string_view(stat).substr(name_end + 1);
  constexpr int kField = 22 - 2;  // of proc(5), counted from behind the name
  for (int i = 0; i < kField; ++i) {
    const auto space = rest.find(' ');
    if (space == std::string_view::npos) return "";
    rest.remove_prefix(space + 1);
  }
  return std::string(rest.substr(0, rest.find(' ')));
}

std::string pid_namespace() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
}

std::string text_of(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t pid_of(const Json& record) {
  const auto found = record.find("pid");
  return found != record.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

[[noreturn]] void refuse(const std::string& directory, const std::string& owner) {
  const Json record = Json::parse(owner, nullptr, /*allow_exceptions=*/false);
  const std::string who = record.is_object()
                              ? fmt::format("process {} on {} since {}", pid_of(record),
                                            text_of(record, "host"), text_of(record, "since"))
                              : "another process";
  throw Error(ErrorCode::kInvalidConfig,
              concat("run_dir: '", directory, "' is in use by ", who,
                     ": wait for its end, stop it, or choose another run_dir"));
}

}  // namespace

RunLock::RunLock(const std::string& directory, RunLockOptions options)
    : directory_(directory), path_(directory + "/.lock"), options_([&] {
        if (options.machine.empty()) options.machine = this_machine();
        return std::move(options);
      }()) {
  try {
    if (!open_and_lock()) refuse(directory_, content_of(path_));
    refuse_if_alive();
    write_record();
    thread_ = start_thread("run-lock", [this] { beat(); });
  } catch (...) {
    close_file();
    throw;
  }
}

RunLock::~RunLock() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
  if (content_of(path_) == record_) ::unlink(path_.c_str());
  close_file();
}

void RunLock::close_file() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

/// An owner that ends removes the file: whoever has locked a removed one begins again.
bool RunLock::open_and_lock() {
  for (;;) {
    fd_ = open_lock_file(path_);
    if (fd_ < 0) {
      throw Error(ErrorCode::kIo, concat(path_, ": cannot be opened: ", std::strerror(errno)));
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      can_lock_ = false;
    }
    struct stat opened = {}, named = {};
    const bool is_named = ::stat(path_.c_str(), &named) == 0;
    if (is_named && ::fstat(fd_, &opened) == 0 && opened.st_ino == named.st_ino) return true;
    close_file();
  }
}

void RunLock::refuse_if_alive() const {
  const std::string owner = content_of(path_);
  const Json record = Json::parse(owner, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) return;  // new, or cut off while it was written
  const bool is_here = text_of(record, "machine") == options_.machine;
  if (is_here && can_lock_) return;  // a living owner would hold the lock
  bool is_alive = false;
  if (is_here && text_of(record, "pid_namespace") == pid_namespace()) {
    is_alive = start_of(pid_of(record)) == text_of(record, "start");
  } else {
    log_info("run_dir: '{}' was used by process {} on {}: waiting to see whether it still is",
             directory_, pid_of(record), text_of(record, "host"));
    is_alive = is_touched();
  }
  if (is_alive) refuse(directory_, owner);
}

bool RunLock::is_touched() const {
  const auto touched_at = [&] {
    struct stat status = {};
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);  // NFS looks anew when one opens
    const bool is_known = fd >= 0 && ::fstat(fd, &status) == 0;
    if (fd >= 0) ::close(fd);
    return is_known ? std::pair(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) : std::pair(0L, 0L);
  };
  const auto before = touched_at();
  const auto deadline = std::chrono::steady_clock::now() + kMissedBeats * options_.beat;
  while (std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(options_.beat / 4);
    if (touched_at() != before) return true;
  }
  return false;
}

void RunLock::write_record() {
  record_ = Json{{"host", host_name()},
                 {"pid", ::getpid()},
                 {"since", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                 {"machine", options_.machine},
                 {"pid_namespace", pid_namespace()},
                 {"start", start_of(::getpid())}}
                .dump() +
            "\n";
  const auto size = static_cast<ssize_t>(record_.size());
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, record_.data(), record_.size(), 0) != size ||
      ::fsync(fd_) != 0) {
    throw Error(ErrorCode::kIo, concat(path_, ": cannot be written: ", std::strerror(errno)));
  }
}

/// Not if the file has been removed: then nobody has taken the directory yet.
bool RunLock::is_anothers() const {
  const std::string owner = content_of(path_);
  return !owner.empty() && owner != record_;
}

void RunLock::require_held() const {
  if (!is_anothers()) return;
  const std::string owner = content_of(path_);
  throw Error(ErrorCode::kIo,
              concat("run_dir: '", directory_, "' has been taken over by another job",
                     " (.lock: ", owner.substr(0, owner.find('\n')),
                     "), since this one was silent for too long"));
}

void RunLock::beat() {
  const MutexLock lock(mutex_);
  for (;;) {
    const auto next = std::chrono::steady_clock::now() + options_.beat;
    while (!ends_ && ended_.wait_until(mutex_, next)) continue;
    if (ends_) return;
    if (!is_anothers()) ::futimens(fd_, nullptr);
  }
}

}  // namespace satrap::trainer
