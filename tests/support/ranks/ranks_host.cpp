#include "tests/support/host_ranks.h"
#include "tests/support/ranks/ranks.h"

namespace satrap::collective {

std::int64_t max_ranks() { return 5; }

std::string why_no_ranks() { return ""; }

std::unique_ptr<backend::Device> make_rank_device(std::int64_t) {
  return backend::make_host_device();
}

std::unique_ptr<DeviceCommunicator> connect_rank_devices(std::unique_ptr<Communicator> group,
                                                         backend::Device&,
                                                         const DeviceCommunicator::Options& options,
                                                         std::string&) {
  return std::make_unique<HostRanks>(std::move(group), options);
}

}  // namespace satrap::collective
