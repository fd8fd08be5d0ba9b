#pragma once

#include <cstdint>

#include "satrap/backend/memory.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// Owns what operations on plans need only while they run, for batches of up to max_ids ids (below
/// 2^31) of rows of one layout: about half of the bytes of a plan. Plans share one if their
/// build_plan and resolve run on one stream, and their backward on one; it outlives them. What
/// views.h says is in the scratch is lost at the next build_plan or resolve of any of them.
class PlanScratch {
 public:
  PlanScratch(Device& device, std::int64_t max_ids, const RowLayout& layout);
  std::int64_t bytes() const { return arena_.capacity_bytes(); }

 private:
  friend class DevicePlan;
  PlanView view_;
  MissView misses_;
  Arena arena_;
};

/// Owns the memory of one batch's plan and of resolve's result for it, for batches as large as its
/// scratch allows. Reused from batch to batch without allocating.
class DevicePlan {
 public:
  DevicePlan(Device& device, const PlanScratch& scratch, std::int64_t max_overflow);

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
