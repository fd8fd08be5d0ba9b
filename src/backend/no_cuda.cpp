// Replaces cuda/backend/ in a build without CUDA.
#include "satrap/backend/device.h"
#include "satrap/core/error.h"

namespace satrap::backend {

std::string why_no_cuda() { return "this build has no CUDA (cmake -DSATRAP_CUDA=ON)"; }

int num_cuda_devices() { return 0; }

std::unique_ptr<Device> make_cuda_device(int) {
  throw Error(ErrorCode::kUnavailable, why_no_cuda());
}

std::string describe_cuda() { return ""; }

bool can_access_peer(int, int) { return false; }

}  // namespace satrap::backend
