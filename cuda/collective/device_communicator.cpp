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

/// What the ranks must know of each other before they call NCCL.
struct Facts {
  std::array<char, 64> boot{};  // of its machine
  std::array<char, 32> gpu{};   // its bus address there
  std::int32_t version = 0;     // of NCCL; 0: there is none
  ncclUniqueId id{};            // of the chief's
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

Facts facts_of(const NcclLibrary* library, const backend::Device& device, bool is_chief) {
  Facts facts;
  put(facts.boot, boot_of_this_machine());
  put(facts.gpu, device.info().bus_address);
  if (library == nullptr) return facts;
  facts.version = version_of(*library);
  if (is_chief && library->get_unique_id(&facts.id) != ncclSuccess) facts.version = 0;
  return facts;
}

/// Why these ranks cannot use NCCL together; empty: they can.
std::string obstacle(std::span<const Facts> ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].version == 0) return concat("rank ", r, " has no NCCL");
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

}  // namespace

std::unique_ptr<DeviceCommunicator> make_device_communicator(
    Communicator& group,
    backend::Device& device,
    const DeviceCommunicator::Options& options,
    std::string& reason) {
  const NcclLibrary* library = nullptr;
  std::string missing;
  try {
    library = &nccl_library();
  } catch (const Error& error) {
    missing = error.what();
  }
  const Facts mine = facts_of(library, device, group.rank() == 0);
  std::vector<Facts> all(static_cast<std::size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                   net::Deadline::after_ms(options.timeout_ms));
  reason = missing.empty() ? obstacle(all) : missing;
  // All come to the same conclusion: a rank without a library has version 0.
  if (!obstacle(all).empty()) return nullptr;
  return std::make_unique<NcclCommunicator>(*library, all.front().id, group.rank(), group.size(),
                                            device, options);
}

std::string describe_nccl() { return text_of(version_of(nccl_library())); }

}  // namespace satrap::collective
