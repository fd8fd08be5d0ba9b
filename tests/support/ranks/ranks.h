#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "satrap/backend/device.h"
#include "satrap/collective/device_communicator.h"

/// The devices of the tests of DeviceCommunicator, one for each rank, and what connects them. The
/// same tests are linked with the host's memory and Gloo (ranks_host.cpp), and with GPUs and NCCL
/// (ranks_gpu.cpp), on the SIMT executor too, where its stand-in has schedules
/// (schedules_simt.cpp).
namespace satrap::collective {

/// How many ranks a test may have, each in a thread of its own.
std::int64_t max_ranks();

/// Why there is none; else empty.
std::string why_no_ranks();

std::unique_ptr<backend::Device> make_rank_device(std::int64_t number);

/// As make_device_communicator, which it calls where there are GPUs.
std::unique_ptr<DeviceCommunicator> connect_rank_devices(std::unique_ptr<Communicator> group,
                                                         backend::Device& device,
                                                         const DeviceCommunicator::Options& options,
                                                         std::string& reason);

/// Decides the order of what follows, where that is simulated.
void set_schedule(std::uint64_t seed);

}  // namespace satrap::collective
