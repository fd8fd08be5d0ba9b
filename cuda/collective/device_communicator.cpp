#include "satrap/collective/device_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <vector>

#include "cuda/collective/nccl_communicator.h"
#include "satrap/core/error.h"
#include "satrap/net/net_error.h"

namespace satrap::collective {
namespace {

/// The facts that the ranks must know of each other before they call NCCL.
struct Facts {
  std::array<char, 64> boot{};      // of its machine
  std::array<char, 32> gpu{};       // its bus address there
  std::array<char, 160> missing{};  // why it has no NCCL; empty: it has
  std::int32_t version = 0;         // of NCCL
};

/// The chief's: where the others meet it.
struct Invitation {
  std::array<char, 160> missing{};  // why there is none
  ncclUniqueId id{};
};

template <std::size_t kSize>
void put(std::array<char, kSize>& to, const std::string& text) {
  std::copy_n(text.data(), std::min(text.size(), kSize - 1), to.data());
}

std::string boot_of_this_machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

int version_of(const NcclLibrary& library) {
  int version = 0;
  return library.get_version(&version) == ncclSuccess ? version : 0;
}

std::string text_of(int version) {  // 22809 is 2.28.9
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

Facts facts_of(const backend::Device& device) {
  Facts facts;
  put(facts.boot, boot_of_this_machine());
  put(facts.gpu, device.info().bus_address);
  try {
    facts.version = version_of(nccl_library());
  } catch (const Error& error) {
    put(facts.missing, error.what());
  }
  return facts;
}

/// Why these ranks cannot use NCCL together; empty: they can.
std::string obstacle(std::span<const Facts> ranks, bool in_order) {
  if (in_order && std::ssize(ranks) > backend::kMaxAdded) {
    return concat("at most ", backend::kMaxAdded, " ranks add in order");
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].missing[0] != '\0') return concat("rank ", r, ": ", ranks[r].missing.data());
    if (ranks[r].version != ranks[0].version) {
      return concat("rank 0 has NCCL ", text_of(ranks[0].version), ", rank ", r, " has ",
                    text_of(ranks[r].version));
    }
    for (std::size_t other = 0; other < r; ++other) {
      if (ranks[other].boot == ranks[r].boot && ranks[other].gpu == ranks[r].gpu) {
        return concat("ranks ", other, " and ", r, " have one GPU");
      }
    }
  }
  return "";
}

/// Opens a port, where the ranks meet.
Invitation invite() {
  Invitation invitation;
  const ncclResult_t result = nccl_library().get_unique_id(&invitation.id);
  if (result != ncclSuccess) {
    put(invitation.missing, concat("ncclGetUniqueId: ", nccl_library().get_error_string(result),
                                   " (", nccl_library().get_last_error(nullptr), ")"));
  }
  return invitation;
}

}  // namespace

std::unique_ptr<DeviceCommunicator> make_device_communicator(
    Communicator& group,
    backend::Device& device,
    const DeviceCommunicator::Options& options,
    std::string& reason) {
  const net::Deadline deadline = net::Deadline::after_ms(options.timeout_ms);
  const Facts mine = facts_of(device);
  std::vector<Facts> all(static_cast<std::size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                   deadline);
  // All come to the same conclusion.
  reason = obstacle(all, options.in_order);
  if (!reason.empty()) return nullptr;
  Invitation invitation;
  if (group.rank() == 0) invitation = invite();
  group.broadcast(std::as_writable_bytes(std::span(&invitation, 1)), 0, deadline);
  reason = invitation.missing.data();
  if (!reason.empty()) return nullptr;
  return std::make_unique<NcclCommunicator>(nccl_library(), invitation.id, group.rank(),
                                            group.size(), device, options);
}

std::string describe_nccl() { return text_of(version_of(nccl_library())); }

}  // namespace satrap::collective
