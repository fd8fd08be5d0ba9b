#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace satrap::cli {

/// Turns SIGINT and SIGTERM into a flag, while it lives. The first signal sets stop(); a second one
/// ends the process at once, as if it were not caught. A signal that was ignored when the
/// program started (nohup, a background job of a script) stays ignored.
///
/// The signals are blocked in the calling thread and taken by a dedicated thread, so nothing runs
/// in a signal handler. Threads started later inherit the blocking: create it before any of them.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  const std::atomic<bool>& stop() const { return stop_; }

  /// Blocks until a signal arrives.
  void wait() const { stop_.wait(false); }

  /// Number of the first signal; 0: none yet.
  int signal_number() const { return signal_number_; }

 private:
  void watch();

  sigset_t previous_mask_{};
  int signal_fd_ = -1;  // readable when a signal has arrived
  int leave_fd_ = -1;   // readable when the watcher must end
  std::atomic<bool> stop_{false};
  std::atomic<int> signal_number_{0};
  std::thread watcher_;
};

/// For every command: makes writing to a closed pipe or past a file size limit a reported error
/// instead of a silent death.
void ignore_write_signals();

}  // namespace satrap::cli
