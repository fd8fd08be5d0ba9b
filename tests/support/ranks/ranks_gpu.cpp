#include "tests/support/ranks/ranks.h"

namespace satrap::collective {

std::int64_t max_ranks() { return backend::num_cuda_devices(); }

std::string why_no_ranks() {
  const std::string reason = backend::why_no_cuda();
  return reason.empty() ? "" : "no GPU: " + reason;
}

std::unique_ptr<backend::Device> make_rank_device(std::int64_t number) {
  return backend::make_cuda_device(static_cast<int>(number));
}

std::unique_ptr<DeviceCommunicator> connect_rank_devices(std::unique_ptr<Communicator> group,
                                                         backend::Device& device,
                                                         const DeviceCommunicator::Options& options,
                                                         std::string& reason) {
  return make_device_communicator(*group, device, options, reason);
}

}  // namespace satrap::collective
