// In place of cuda/backend/ where the build has no CUDA: says so.
#include "satrap/backend/device.h"
#include "satrap/core/error.h"

namespace satrap::backend {

std::string why_no_cuda() { return "this build has no CUDA (cmake -DSATRAP_CUDA=ON)"; }

std::unique_ptr<Device> make_cuda_device(int) {
  throw Error(ErrorCode::kUnavailable, why_no_cuda());
}

}  // namespace satrap::backend
