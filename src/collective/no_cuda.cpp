// Replaces cuda/collective/ in a build without CUDA.
#include "satrap/backend/device.h"
#include "satrap/collective/device_communicator.h"
#include "satrap/core/error.h"

namespace satrap::collective {

std::unique_ptr<DeviceCommunicator> make_device_communicator(Communicator&,
                                                             backend::Device&,
                                                             const DeviceCommunicator::Options&,
                                                             std::string& reason) {
  reason = backend::why_no_cuda();
  return nullptr;
}

std::string describe_nccl() { throw Error(ErrorCode::kUnavailable, backend::why_no_cuda()); }

}  // namespace satrap::collective
