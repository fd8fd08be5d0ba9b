#include "src/app/gpus.h"

#include <fmt/format.h>

#include "satrap/backend/device.h"
#include "satrap/collective/device_communicator.h"
#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/dense/dense_network.h"

namespace satrap::app {
namespace {

std::string describe_gpu(int number) {
  try {
    const backend::DeviceInfo info = backend::make_cuda_device(number)->info();
    return fmt::format("{}, compute capability {}.{}, {} of {} free", info.name,
                       info.compute_capability / 10, info.compute_capability % 10,
                       format_bytes(info.free_bytes), format_bytes(info.memory_bytes));
  } catch (const Error& error) {
    return fmt::format("off: {}", error.what());
  }
}

/// Whether several GPUs exchange what they compute without the host's memory.
std::string describe_peers(int num_gpus) {
  int pairs = 0, missing = 0;
  std::string first;
  for (int a = 0; a < num_gpus; ++a) {
    for (int b = a + 1; b < num_gpus; ++b, ++pairs) {
      if (backend::can_access_peer(a, b) && backend::can_access_peer(b, a)) continue;
      if (missing++ == 0) first = fmt::format("GPU {} and GPU {}", a, b);
    }
  }
  if (missing == 0) return "every GPU reads the memory of every other";
  return fmt::format(
      "{} of {} pairs, the first {}, do not read each other's memory: what they exchange goes "
      "through the host's",
      missing, pairs, first);
}

/// How the ranks of several GPUs exchange rows and gradients.
std::string describe_exchange() {
  try {
    return collective::describe_nccl();
  } catch (const Error& error) {
    return fmt::format("off: {}; ranks exchange everything in the host's memory", error.what());
  }
}

/// Names what computes the dense network of a job on a GPU.
std::string describe_libtorch_there() {
  try {
    const bool has_kernels = backend::make_cuda_device(0)->libtorch_gpu() >= 0;
    return has_kernels ? dense::describe_libtorch_for_cuda() : dense::describe_libtorch();
  } catch (const Error& error) {
    return fmt::format("off: {}", error.what());
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe_gpus() {
  if (const std::string reason = backend::why_no_cuda(); !reason.empty()) {
    return {{"device", "auto is cpu"}, {"cuda", "off: " + reason}};
  }
  const int num_gpus = backend::num_cuda_devices();
  std::vector<std::pair<std::string, std::string>> lines = {
      {"device", "auto is cuda, one GPU for each rank; satrap-run starts a rank for each GPU"},
      {"cuda", backend::describe_cuda()}};
  for (int number = 0; number < num_gpus; ++number) {
    lines.emplace_back(fmt::format("gpu {}", number), describe_gpu(number));
  }
  if (num_gpus > 1) {
    lines.emplace_back("peers", describe_peers(num_gpus));
    lines.emplace_back("nccl", describe_exchange());
  }
  lines.emplace_back("gpu torch", describe_libtorch_there());
  return lines;
}

}  // namespace satrap::app
