#pragma once

#include <cstdint>

#include "satrap/backend/memory.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// Owns the memory of one batch's plan and of resolve's result for it, for batches of up to
/// max_ids ids (below 2^31) of rows of one layout. Reused from batch to batch without allocating.
class Plan {
 public:
  Plan(Device& device, std::int64_t max_ids, const RowLayout& layout, std::int64_t max_overflow);

  /// The views of a batch of num_ids <= max_ids ids.
  PlanView view(std::int64_t num_ids) const;
  const MissView& misses() const { return misses_; }
  std::int64_t bytes() const { return arena_.capacity_bytes(); }

 private:
  Arena arena_;
  PlanView view_;
  MissView misses_;
};

/// Owns the output of list_slots, for num_sets sets at a time.
class SlotListBuffer {
 public:
  SlotListBuffer(Device& device, std::int64_t num_sets);
  const SlotList& view() const { return view_; }

 private:
  Arena arena_;
  SlotList view_;
};

}  // namespace satrap::backend
