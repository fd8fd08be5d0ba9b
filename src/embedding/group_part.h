#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "satrap/backend/plan.h"
#include "satrap/backend/stream.h"
#include "satrap/embedding/group_batch.h"
#include "satrap/embedding/row_groups.h"
#include "src/embedding/device_array.h"

namespace satrap::embedding {

/// What one batch needs of a row group's cache. Reused from batch to batch.
struct GroupPart {
  GroupPart(backend::Device& device,
            const FeatureLayout& layout,
            const RowGroup& of_group,
            ThreadPool& pool)
      : group(of_group),
        batch(device, layout, of_group, pool),
        released(device),
        made_room(device),
        slots(device),
        row_places(device) {}

  backend::PlanView view() const { return plan->view(batch.num_ids()); }
  std::int64_t row_bytes() const { return group.layout.row_bytes; }

  const RowGroup& group;

  GroupBatch batch;
  std::shared_ptr<const backend::PlanScratch> scratch;  // of the plan
  std::int64_t max_ids = -1;                            // that the plan has room for
  std::optional<backend::Plan> plan;

  QueuedArray<std::int32_t> released;  // [1 + n] overflow rows that are saved: n, then slots

  // The rows to be fetched: keys, the slots that wait for them, and their memory.
  backend::Event made_room;                  // the rows that were in the slots have been copied
  std::vector<Key> missing;                  // [n]
  std::vector<std::int32_t> for_slots;       // [n]
  std::vector<std::int32_t> list;            // [1 + n]
  QueuedArray<std::int32_t> slots;           // [1 + n] in the device: n, then for_slots
  backend::Memory staging;                   // [n, row_bytes], pinned
  QueuedArray<const std::byte*> row_places;  // [n] in the device, of rows that stay in the store
};

}  // namespace satrap::embedding
