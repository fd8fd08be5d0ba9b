#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include <sys/types.h>

namespace satrap::cli {

/// The satrap-run that started this process and decides when it ends.
struct Launcher {
  pid_t pid = 0;                       // 0: there is none
  std::chrono::milliseconds grace{0};  // --grace: how long it gives ranks for their checkpoint

  /// SATRAP_RUN_PID, if that is this process's parent, and SATRAP_RUN_GRACE in seconds.
  static Launcher from_environment();
};

/// Turns SIGINT and SIGTERM into a flag, while it lives. The first signal sets stop(); a second one
/// ends the process at once, as if it were not caught. A signal that was ignored when the
/// program started (nohup, a background job of a script) stays ignored.
///
/// scancel and systemd signal all processes of a job at once, and then the launcher passes the
/// signal on. So a signal of the launcher is never a second one. A process that serves others
/// (Role::kServer) takes the first signal of somebody else as an announcement: it serves until
/// the launcher says so, a second signal comes, or the launcher's grace and kServerGrace are over.
///
/// The signals are blocked in the calling thread and taken by a dedicated thread, so nothing runs
/// in a signal handler. Threads started later inherit the blocking: create it before any of them.
class StopSignals {
 public:
  enum class Role { kWorker, kServer, kGuest };  // kGuest: the program around it takes signals
  static constexpr std::chrono::seconds kServerGrace{10};

  explicit StopSignals(Role role = Role::kWorker, Launcher launcher = Launcher::from_environment());
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  const std::atomic<bool>& stop() const { return stop_; }

  /// Blocks until a signal arrives.
  void wait() const { stop_.wait(false); }

  /// Number of the first signal; 0: none yet.
  int signal_number() const { return signal_number_; }

  /// A server that has got a signal and serves on.
  bool is_announced() const { return announced_ != 0; }

 private:
  void watch();
  void take(int signal, pid_t sender);
  void set_stop(int signal);
  void serve_on(int signal);
  void end_service();
  int ms_to_end() const;

  const Role role_;
  const Launcher launcher_;
  // Used by the watcher alone:
  bool is_signalled_ = false;                  // by somebody else than the launcher
  std::chrono::steady_clock::time_point end_;  // when a server obeys, at the latest
  sigset_t previous_mask_{};
  int signal_fd_ = -1;  // readable when a signal has arrived
  int leave_fd_ = -1;   // readable when the watcher must end
  std::atomic<bool> stop_{false};
  std::atomic<int> announced_{0};  // the signal that a server has not obeyed yet
  std::atomic<int> signal_number_{0};
  std::thread watcher_;
};

/// For every command: makes writing to a closed pipe or past a file size limit a reported error
/// instead of a silent death.
void ignore_write_signals();

}  // namespace satrap::cli
