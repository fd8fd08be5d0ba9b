#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "satrap/backend/stream.h"
#include "satrap/core/mutex.h"

namespace satrap::embedding {

/// The steps of a cache that are completed: their updates are in the rows. Updates are queued on a
/// stream, in the order of steps, and are done later. Any thread.
class CompletedSteps {
 public:
  explicit CompletedSteps(backend::Device& device) : device_(device) {}

  /// The steps up to this one are completed.
  void start_after(std::int64_t step);

  /// What has been queued on `stream` so far completes `step`. Earlier ones change nothing.
  void add(std::int64_t step, backend::StreamRef stream);

  std::int64_t newest();  // does not block

  /// Blocks until a later step than this one is completed; throws Error(kUnavailable) once stopped.
  void wait_beyond(std::int64_t step);
  void stop();

 private:
  std::int64_t find_newest() SATRAP_REQUIRES(mutex_);

  backend::Device& device_;
  Mutex mutex_;
  CondVar added_;                                // or stopped
  using Mark = std::shared_ptr<backend::Event>;  // a thread may wait while another takes it away
  std::deque<std::pair<std::int64_t, Mark>> queued_ SATRAP_GUARDED_BY(mutex_);  // oldest first
  std::vector<Mark> free_ SATRAP_GUARDED_BY(mutex_);
  std::int64_t newest_ SATRAP_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ SATRAP_GUARDED_BY(mutex_) = false;
};

}  // namespace satrap::embedding
