#include "satrap/core/thread_group.h"

#include "satrap/core/error.h"

namespace satrap {

void thread_not_started(const std::string& name, const std::system_error& error) {
  throw Error(ErrorCode::kUnavailable,
              concat("thread '", name, "' cannot be started: ", error.code().message(),
                     "; too many threads (see ulimit -u, and pids.max of a container) or too "
                     "little memory (ulimit -v)"));
}

ThreadGroup::~ThreadGroup() {
  stop_();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadGroup::start(const std::string& name, std::function<void()> run) {
  threads_.emplace_back();  // may find no memory: not after the thread has started
  try {
    threads_.back() = start_thread(name, std::move(run));
  } catch (...) {
    threads_.pop_back();
    throw;
  }
}

}  // namespace satrap
