#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "satrap/backend/stream.h"

namespace satrap::embedding {

/// Steps whose updates have been queued on a stream, in their order, until they are done. Any
/// thread.
class QueuedSteps {
 public:
  explicit QueuedSteps(backend::Device& device) : device_(device) {}

  /// What has been queued on `stream` so far completes `step`.
  void add(std::int64_t step, backend::StreamRef stream);

  /// The newest step that has been found done; does not block.
  std::optional<std::int64_t> newest_done();

  bool is_empty() const;

  /// Blocks until the oldest one is done, if there is one.
  void wait_for_oldest();

 private:
  backend::Device& device_;
  mutable std::mutex mutex_;
  using Mark = std::shared_ptr<backend::Event>;  // a thread may wait while another takes it away
  std::deque<std::pair<std::int64_t, Mark>> steps_;
  std::vector<Mark> free_;
  std::optional<std::int64_t> newest_done_;
};

}  // namespace satrap::embedding
