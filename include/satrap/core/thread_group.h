#pragma once

#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "satrap/core/thread_name.h"

namespace satrap {

[[noreturn]] void thread_not_started(const std::string& name, const std::system_error& error);

/// A thread that bears `name` (see set_thread_name) and calls `run`, which handles its own
/// exceptions. Throws Error(kUnavailable) that names the thread and the limits to look at if the
/// system has no thread or no memory for one.
template <class Run>
std::thread start_thread(const std::string& name, Run run) {
  try {
    return std::thread([name, run = std::move(run)]() mutable {
      set_thread_name(name);
      run();
    });
  } catch (const std::system_error& error) {
    thread_not_started(name, error);
  }
}

/// The threads of one owner, which end together: the destructor calls `stop`, after which every one
/// of them must return, and joins them. As the last member it does so before the others are
/// destroyed, also if the owner's constructor throws, for want of another thread for example. For
/// the owner's thread alone.
class ThreadGroup {
 public:
  explicit ThreadGroup(std::function<void()> stop) : stop_(std::move(stop)) {}
  ~ThreadGroup();
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  /// As start_thread.
  void start(const std::string& name, std::function<void()> run);

 private:
  const std::function<void()> stop_;
  std::vector<std::thread> threads_;
};

}  // namespace satrap
