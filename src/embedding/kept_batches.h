#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "src/embedding/group_part.h"

namespace satrap::embedding {

/// The batches that have been looked at, in pinned memory, until they are planned: so their keys
/// are made once. At most as many as the planner looks ahead, and as fit. The planner's thread
/// alone.
class KeptBatches {
 public:
  using Parts = std::span<const std::unique_ptr<GroupPart>>;  // [num_groups]

  /// All but the bytes outlive it.
  KeptBatches(backend::Device& device,
              const FeatureLayout& layout,
              ThreadPool& pool,
              std::int64_t max_bytes)
      : device_(device), layout_(layout), pool_(pool), max_bytes_(max_bytes) {}

  /// Takes the batch of `step` out of the parts, which may be filled at once, even if its way to
  /// the device is still queued. Steps ascend. False if it does not fit: it stays where it is.
  bool keep(std::int64_t step, Parts parts);

  /// Puts the batch of `step` into the parts, as fill() would, if it has been kept. No queued work
  /// may still read the parts' batches. Those that have been kept are planned in their order.
  bool take(std::int64_t step, Parts parts);

 private:
  struct Kept {
    std::int64_t step = 0, bytes = 0;
    std::vector<std::unique_ptr<GroupBatch>> batches = {};  // [num_groups]
  };
  void exchange(Kept& kept, Parts parts);

  backend::Device& device_;
  const FeatureLayout& layout_;
  ThreadPool& pool_;
  const std::int64_t max_bytes_;
  std::int64_t bytes_ = 0;  // of kept_
  std::deque<Kept> kept_;   // oldest first
  std::vector<Kept> free_;  // their memory is used again
};

}  // namespace satrap::embedding
