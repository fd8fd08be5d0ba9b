#include "satrap/cli/stop_signals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/thread_group.h"

namespace satrap::cli {
namespace {

constexpr std::int64_t kMaxPollMs = 1'000'000'000;  // fits an int

bool is_ignored(int signal) {
  struct sigaction action{};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

/// 0: the variable is not set, or is no number.
std::int32_t number_in(const char* variable) {
  const char* text = std::getenv(variable);
  std::int32_t number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

/// Ends the process as if the signal had never been caught.
void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal);
  pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
  raise(signal);
}

}  // namespace

Launcher Launcher::from_environment() {
  if (number_in("SATRAP_RUN_PID") != getppid()) return {};
  return {.pid = getppid(), .grace = std::chrono::seconds(number_in("SATRAP_RUN_GRACE"))};
}

StopSignals::StopSignals(Role role, Launcher launcher) : role_(role), launcher_(launcher) {
  if (role_ == Role::kGuest) return;
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) {
    if (!is_ignored(signal)) sigaddset(&signals, signal);
  }
  SATRAP_CHECK(pthread_sigmask(SIG_BLOCK, &signals, &previous_mask_) == 0, "cannot block signals");
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
  leave_fd_ = eventfd(0, EFD_CLOEXEC);
  SATRAP_CHECK(signal_fd_ >= 0 && leave_fd_ >= 0, "no file descriptors for signals");
  watcher_ = start_thread("signals", [this] { watch(); });
}

StopSignals::~StopSignals() {
  if (role_ == Role::kGuest) return;
  eventfd_write(leave_fd_, 1);
  watcher_.join();
  close(signal_fd_);
  close(leave_fd_);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

void StopSignals::watch() {
  while (true) {
    std::array<pollfd, 2> wanted{pollfd{signal_fd_, POLLIN, 0}, pollfd{leave_fd_, POLLIN, 0}};
    const int ready = poll(wanted.data(), wanted.size(), ms_to_end());
    if (ready == 0) end_service();
    if (ready <= 0) continue;
    if ((wanted[1].revents & POLLIN) != 0) return;
    signalfd_siginfo info{};
    if (read(signal_fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    take(static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid));
  }
}

void StopSignals::take(int signal, pid_t sender) {
  const bool is_of_launcher = launcher_.pid != 0 && sender == launcher_.pid;
  if (!is_of_launcher && std::exchange(is_signalled_, true)) die_of(signal);
  const bool waits = !is_of_launcher && launcher_.pid != 0 && role_ == Role::kServer;
  if (!waits) return set_stop(signal);
  if (!stop_) serve_on(signal);
}

void StopSignals::serve_on(int signal) {
  const auto limit = launcher_.grace + kServerGrace;
  announced_ = signal;
  end_ = std::chrono::steady_clock::now() + limit;
  log_info(
      "{}, but not of satrap-run: serves on until the ranks have written their checkpoint, "
      "at most {} s; once more ends it at once",
      signal == SIGINT ? "SIGINT" : "SIGTERM",
      std::chrono::duration_cast<std::chrono::seconds>(limit).count());
}

void StopSignals::set_stop(int signal) {
  announced_ = 0;
  if (stop_) return;
  signal_number_ = signal;
  stop_ = true;
  stop_.notify_all();
}

void StopSignals::end_service() {
  log_warning("satrap-run has not ended it in time: it ends");
  set_stop(announced_);
}

/// For poll: -1 waits for ever.
int StopSignals::ms_to_end() const {
  if (announced_ == 0) return -1;
  const auto left = end_ - std::chrono::steady_clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, kMaxPollMs));
}

void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace satrap::cli
