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

/// backward_update of one optimizer; each is instantiated in its own source file.
template <RowOptimizerType kType>
void backward_update_of(const Grids& grids,
                        const UpdateArguments& arguments,
                        const PlanView& plan,
                        FloatType grad_type,
                        const void* grad,
                        StreamRef stream) {
  launch_backward(grids, arguments.cache.layout.padded_dim, plan, grad_type, grad, stream,
                  [&](auto quads) { return UpdateSink<kType, quads()>{{arguments}}; });
}

extern template void backward_update_of<RowOptimizerType::kSgd>(const Grids&,
                                                                const UpdateArguments&,
                                                                const PlanView&,
                                                                FloatType,
                                                                const void*,
                                                                StreamRef);
extern template void backward_update_of<RowOptimizerType::kAdagrad>(const Grids&,
                                                                    const UpdateArguments&,
                                                                    const PlanView&,
                                                                    FloatType,
                                                                    const void*,
                                                                    StreamRef);
extern template void backward_update_of<RowOptimizerType::kRowwiseAdagrad>(const Grids&,
                                                                           const UpdateArguments&,
                                                                           const PlanView&,
                                                                           FloatType,
                                                                           const void*,
                                                                           StreamRef);
extern template void backward_update_of<RowOptimizerType::kAdam>(const Grids&,
                                                                 const UpdateArguments&,
                                                                 const PlanView&,
                                                                 FloatType,
                                                                 const void*,
                                                                 StreamRef);
extern template void backward_update_of<RowOptimizerType::kFtrl>(const Grids&,
                                                                 const UpdateArguments&,
                                                                 const PlanView&,
                                                                 FloatType,
                                                                 const void*,
                                                                 StreamRef);

}  // namespace satrap::backend
