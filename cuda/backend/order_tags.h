#pragma once

#include "cuda/backend/launch.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// The sort looks at half of a tag only, which makes it half as long. Two keys of a batch are
/// rarely equal there: of a million, about a hundred pairs. Such *mixed runs* are put in order
/// afterwards.
__device__ inline std::uint32_t prefix_of(std::uint64_t tag) {
  return static_cast<std::uint32_t>(tag >> 32);
}

/// After the sort by prefix: queues what writes plan.sorted_tags, and puts positions whose tags are
/// equal in their prefix alone in the order of the tags.
void order_tags(const PlanView& plan, const Grids& grids, StreamRef stream);

}  // namespace satrap::backend
