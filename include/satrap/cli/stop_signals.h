#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace satrap::cli {

/// Turns SIGINT and SIGTERM into a flag, while it lives. The first one sets stop(); a second one
/// ends the process at once, as if it had not been caught. A signal that was ignored when the
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

  /// Blocks until a signal comes.
  void wait() const { stop_.wait(false); }

  /// Number of the signal that came first, 0: none yet.
  int signal_number() const { return signal_number_; }

 private:
  void watch();

  sigset_t previous_mask_{};
  int signal_fd_ = -1;  // readable when a signal has come
  int leave_fd_ = -1;   // readable when the watcher shall end
  std::atomic<bool> stop_{false};
  std::atomic<int> signal_number_{0};
  std::thread watcher_;
};

/// What every command wants: writing to a closed pipe or past a file size limit is an error to be
/// reported, not a reason to die silently.
void ignore_write_signals();

}  // namespace satrap::cli
