#include "satrap/cli/stop_signals.h"

#include <array>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/thread_group.h"

namespace satrap::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
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

StopSignals::StopSignals() {
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
  eventfd_write(leave_fd_, 1);
  watcher_.join();
  close(signal_fd_);
  close(leave_fd_);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

void StopSignals::watch() {
  while (true) {
    std::array<pollfd, 2> wanted{pollfd{signal_fd_, POLLIN, 0}, pollfd{leave_fd_, POLLIN, 0}};
    if (poll(wanted.data(), wanted.size(), -1) < 0) continue;
    if ((wanted[1].revents & POLLIN) != 0) return;
    signalfd_siginfo info{};
    if (read(signal_fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    if (stop_) die_of(signal);
    signal_number_ = signal;
    stop_ = true;
    stop_.notify_all();
  }
}

void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace satrap::cli
