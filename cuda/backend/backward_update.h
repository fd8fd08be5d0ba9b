#pragma once

#include "cuda/backend/backward.h"
#include "cuda/backend/update_row.h"

namespace satrap::backend {

/// The sink of training: runs the optimizer on the row of every key that has one.
template <RowOptimizerType kType, int kQuads>
struct UpdateSink {
  RowUpdate<kType, kQuads> update;

  using Fetched = typename RowUpdate<kType, kQuads>::Fetched;
  __device__ std::int32_t place_of(const PlanView& plan, std::uint32_t unique) const {
    return plan.slots[unique];
  }
  __device__ void fetch(const Group& group,
                        RowLanes lanes,
                        const PlanView& plan,
                        std::uint32_t unique,
                        std::int32_t place,
                        Fetched& fetched) const {
    update.fetch(group, lanes, place, plan.unique_tags + unique, fetched);
  }
  __device__ void use(const Group& group,
                      RowLanes lanes,
                      const PlanView& plan,
                      std::uint32_t unique,
                      std::int32_t place,
                      Fetched& fetched,
                      const float4 (&grad)[kQuads]) const {
    update(group, lanes, place, plan.unique_tags + unique, fetched, grad);
  }
};

template <RowOptimizerType kType>
void backward_update_of(const Grids& grids, const BackwardUpdate& operation, StreamRef stream) {
  const UpdateArguments arguments{operation.cache, operation.steps};
  launch_backward(grids, operation.cache.layout.padded_dim, operation.plan, operation.grad_type,
                  operation.grad, stream,
                  [&](auto quads) { return UpdateSink<kType, quads()>{{arguments}}; });
}

}  // namespace satrap::backend
