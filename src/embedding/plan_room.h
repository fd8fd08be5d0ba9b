#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "satrap/backend/device_plan.h"
#include "src/embedding/group_part.h"

namespace satrap::embedding {

/// Gives batches of one table group memory for their plans, which share their scratch: their
/// build_plan runs on one stream, and their backward on one. Grows with the largest batch.
class PlanRoom {
 public:
  /// Both outlive it.
  PlanRoom(backend::Device& device, const RowLayout& layout) : device_(device), layout_(layout) {}

  /// No queued work may still use the part's plan, but on the stream of its next build_plan.
  void make(GroupPart& part, std::int64_t max_overflow) {
    const std::int64_t num_ids = part.batch.num_ids();
    if (scratch_ == nullptr || num_ids > max_ids_) {
      // Batches differ. Plans of earlier batches keep the scratch that they were made with.
      max_ids_ = std::max<std::int64_t>(1, num_ids + num_ids / 4);
      scratch_ = std::make_shared<const backend::PlanScratch>(device_, max_ids_, layout_);
    }
    if (num_ids > part.max_ids) {
      part.plan.reset();
      part.scratch = scratch_;
      part.max_ids = max_ids_;
    }
    if (!part.plan) part.plan.emplace(device_, *part.scratch, max_overflow);
  }

 private:
  backend::Device& device_;
  const RowLayout& layout_;
  std::shared_ptr<const backend::PlanScratch> scratch_;  // of the plans made from now on
  std::int64_t max_ids_ = 0;                             // that it has room for
};

}  // namespace satrap::embedding
