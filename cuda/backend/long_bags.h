#pragma once

#include "cuda/backend/launch.h"
#include "satrap/backend/operations.h"

namespace satrap::backend {

/// The part of pool_forward that long bags are. Queues nothing where there are none.
void pool_long_bags(const Grids& grids, const PoolForward& operation, StreamRef stream);

}  // namespace satrap::backend
