#pragma once

#include "cuda/backend/launch.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// After the sort by prefix: queues what writes plan.sorted_tags, and puts positions whose tags are
/// equal in their prefix alone in the order of the tags.
void order_tags(const PlanView& plan, const Grids& grids, StreamRef stream);

}  // namespace satrap::backend
