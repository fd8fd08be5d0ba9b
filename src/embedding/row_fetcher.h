#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <span>

#include "satrap/core/mutex.h"
#include "satrap/core/thread_group.h"
#include "satrap/table/row_store.h"

namespace satrap::embedding {

/// Fetches the rows that batches miss from a store, for several batches at a time, on threads of
/// its own. A batch may need what an earlier one fetches, so it waits for all before it, too.
/// Thread-safe.
class RowFetcher {
 public:
  struct Request {
    std::int64_t step = 0;              // of the batch, ascending from request to request
    std::span<const Key> keys = {};     // [n] ascending; with `rows` in memory of the batch
    std::span<std::byte*> rows = {};    // [n] out
    bool may_stay = false;              // rows may be left in the store: table::RowStore::locate
    std::function<void()> arrive = {};  // called once they are there, on a thread of this
  };

  /// `store` outlives it.
  RowFetcher(table::RowStore& store, std::int64_t num_threads);

  void start(Request request);  // never blocks

  /// Blocks until the requests of all steps up to `step` have been answered. Rethrows their error;
  /// throws Error(kUnavailable) once stopped.
  void wait(std::int64_t step);

  /// Blocks while a request of `step` is on its way, and drops one that is not. Then none of the
  /// threads uses its memory. Throws nothing.
  void forget(std::int64_t step) noexcept;

  /// Requests that are not on their way are dropped. Any thread.
  void stop();

 private:
  enum class State : std::uint8_t { kWaits, kRuns, kDone };
  struct Entry {
    Request request;
    State state = State::kWaits;
  };
  void run();
  Entry* next() SATRAP_REQUIRES(mutex_);

  table::RowStore& store_;
  Mutex mutex_;
  CondVar changed_;
  // Oldest first; done ones leave at the front.
  std::deque<Entry> entries_ SATRAP_GUARDED_BY(mutex_);
  bool is_stopped_ SATRAP_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ SATRAP_GUARDED_BY(mutex_);
  ThreadGroup threads_{[this] { stop(); }};
};

}  // namespace satrap::embedding
