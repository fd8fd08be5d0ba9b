#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include <nanobind/nanobind.h>

#include "satrap/core/thread_group.h"

namespace satrap::engine {

/// Calls work(stop) on a thread of its own, while this one, which has the GIL, waits without it and
/// looks for Python's signals. One that raises sets `stop`; it is thrown once the work has ended.
/// Rethrows what the work throws.
template <class Work>
void do_interruptibly(const Work& work) {
  constexpr std::chrono::milliseconds kBetweenSignals(50);
  std::atomic<bool> stop = false;
  std::packaged_task<void()> task([&] { work(stop); });
  std::future<void> done = task.get_future();
  std::thread thread = start_thread("engine", std::move(task));
  std::optional<nanobind::python_error> raised;
  while (true) {
    bool is_done = false;
    {
      const nanobind::gil_scoped_release released;
      is_done = done.wait_for(kBetweenSignals) == std::future_status::ready;
    }
    if (is_done) break;
    if (!raised && PyErr_CheckSignals() != 0) {
      raised.emplace();
      stop = true;
    }
  }
  thread.join();
  if (raised) throw nanobind::python_error(std::move(*raised));
  done.get();
}

}  // namespace satrap::engine
