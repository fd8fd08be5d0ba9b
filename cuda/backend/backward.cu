#include "cuda/backend/backward.h"
#include "cuda/backend/cuda_device.h"
#include "satrap/kernels/row_update.h"

namespace satrap::backend {

void CudaDevice::backward_update(const BackwardUpdate& operation, StreamRef stream) {
  with_optimizer(operation.optimizer,
                 [&](auto type) { backward_update_of<type()>(grids_, operation, stream); });
}

void CudaDevice::backward_gradients(const BackwardGradients& operation, StreamRef stream) {
  launch_backward(
      grids_, operation.layout.padded_dim, operation.plan, operation.grad_type, operation.grad,
      stream, [&](auto quads) { return PlacingSink<quads()>{{operation.out}, operation.places}; });
}

}  // namespace satrap::backend
