#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "satrap/backend/device_plan.h"
#include "satrap/backend/stream.h"
#include "satrap/embedding/group_batch.h"
#include "satrap/embedding/table_groups.h"
#include "src/embedding/device_array.h"

namespace satrap::embedding {

/// What one batch needs of a table group's cache. Reused from batch to batch.
struct GroupPart {
  GroupPart(backend::Device& device,
            const FeatureLayout& layout,
            const TableGroup& of_group,
            ThreadPool& pool)
      : group(of_group),
        batch(device, layout, of_group, pool),
        made_room(device),
        released(device),
        slots(device),
        row_places(device) {}

  backend::PlanView view() const { return plan->view(batch.num_ids()); }
  std::int64_t row_bytes() const { return group.layout.row_bytes; }

  const TableGroup& group;

  GroupBatch batch;
  std::shared_ptr<const backend::PlanScratch> scratch;  // of the plan
  std::int64_t max_ids = -1;                            // that the plan has room for
  std::optional<backend::DevicePlan> plan;

  // Pinned memory is freed last: freeing memory of the device waits for the work that reads it.
  backend::Memory staging;  // [n, row_bytes], of the rows to be fetched; pinned

  // The rows that make room. Whoever queues work that ends the step's use of this part has it wait
  // for made_room first, so that lists are not used again while they are read.
  backend::Event made_room;            // they have been copied
  QueuedArray<std::int32_t> released;  // [1 + n] those in overflow rows: n, then slots

  // The rows to be fetched: keys, and the slots that wait for them.
  std::vector<Key> missing;                  // [n]
  std::vector<std::int32_t> for_slots;       // [n]
  std::vector<std::int32_t> list;            // [1 + n]
  QueuedArray<std::int32_t> slots;           // [1 + n] in the device: n, then for_slots
  QueuedArray<const std::byte*> row_places;  // [n] in the device, of rows that stay in the store
};

}  // namespace satrap::embedding
