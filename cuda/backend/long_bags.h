#pragma once

#include "cuda/backend/launch.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// The part of pool_forward that long bags are. Queues nothing where there are none.
void pool_long_bags(const Grids& grids,
                    const CacheView& cache,
                    const Bags& bags,
                    const PlanView& plan,
                    FloatType out_type,
                    void* out,
                    StreamRef stream);

}  // namespace satrap::backend
