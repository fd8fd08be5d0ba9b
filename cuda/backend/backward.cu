#include "cuda/backend/backward.h"
#include "cuda/backend/backward_update.h"
#include "cuda/backend/cuda_device.h"

namespace satrap::backend {

void CudaDevice::backward_update(const CacheView& cache,
                                 const PlanView& plan,
                                 FloatType grad_type,
                                 const void* grad,
                                 RowOptimizerType optimizer,
                                 const TableStep* steps,
                                 StreamRef stream) {
  const UpdateArguments arguments{cache, steps};
  using enum RowOptimizerType;
  switch (optimizer) {
    case kSgd:
      return backward_update_of<kSgd>(grids_, arguments, plan, grad_type, grad, stream);
    case kAdagrad:
      return backward_update_of<kAdagrad>(grids_, arguments, plan, grad_type, grad, stream);
    case kRowwiseAdagrad:
      return backward_update_of<kRowwiseAdagrad>(grids_, arguments, plan, grad_type, grad, stream);
    case kAdam:
      return backward_update_of<kAdam>(grids_, arguments, plan, grad_type, grad, stream);
    case kFtrl:
      return backward_update_of<kFtrl>(grids_, arguments, plan, grad_type, grad, stream);
  }
}

void CudaDevice::backward_gradients(const RowLayout& layout,
                                    const PlanView& plan,
                                    FloatType grad_type,
                                    const void* grad,
                                    const std::int32_t* places,
                                    float* out,
                                    StreamRef stream) {
  launch_backward(grids_, layout.padded_dim, plan, grad_type, grad, stream,
                  [&](auto quads) { return PlacingSink<quads()>{{out}, places}; });
}

}  // namespace satrap::backend
