// The GPUs of this machine. Nothing here makes a context, which would take memory on each GPU
// that is asked about.
#include "cuda/backend/gpus.h"

#include <cuda_runtime_api.h>

#include "cuda/backend/architectures.h"
#include "cuda/backend/check.h"

namespace satrap::backend {
namespace {

/// As NVIDIA writes them: 13.0 of 13000.
std::string shown_version(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

std::string shown_capability(int capability) {
  return concat(capability / 10, ".", capability % 10);
}

int attribute(cudaDeviceAttr which, int number) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, number), "cudaDeviceGetAttribute");
  return value;
}

/// In which CUDA the driver is current; 0: there is no driver.
int driver_version() {
  int version = 0;
  check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  return version;
}

int build_version() {
  int version = 0;
  check(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion");
  return version;
}

/// Drivers of a major version of CUDA run what is built with any of its minor ones.
std::string what_driver_is_needed() {
  const int major = build_version() / 1000;
  constexpr int kMajor = 13, kDriver = 580;  // the first one for it on Linux
  return concat("install one for CUDA ", major,
                major == kMajor ? concat(", ", kDriver, " or newer") : std::string());
}

std::string why_no_driver() {
  const int driver = driver_version();
  if (driver == 0) {
    return concat("this machine has no NVIDIA driver, or this container does not see it; ",
                  what_driver_is_needed());
  }
  return concat("the NVIDIA driver is for CUDA ", shown_version(driver),
                ", too old for this build with CUDA ", shown_version(build_version()), "; ",
                what_driver_is_needed());
}

int num_visible() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

}  // namespace

int compute_capability(int number) {
  return attribute(cudaDevAttrComputeCapabilityMajor, number) * 10 +
         attribute(cudaDevAttrComputeCapabilityMinor, number);
}

std::string why_not_this_gpu(int number) {
  const int capability = compute_capability(number);
  if (capability >= lowest_architecture()) return "";
  return concat("GPU ", number, " has compute capability ", shown_capability(capability),
                ", too low for the kernels of this build, which need ",
                shown_capability(lowest_architecture()));
}

std::string why_no_cuda() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    // Also where there is no driver at all.
    if (error == cudaErrorInsufficientDriver) return why_no_driver();
    if (error == cudaErrorNoDevice) {
      return "the NVIDIA driver shows no GPU (is CUDA_VISIBLE_DEVICES set?)";
    }
    return concat(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  }
  std::string reason = "the NVIDIA driver shows no GPU";
  for (int number = 0; number < count; ++number) {
    reason = why_not_this_gpu(number);
    if (reason.empty()) break;
  }
  return reason;
}

int num_cuda_devices() { return why_no_cuda().empty() ? num_visible() : 0; }

std::string describe_cuda() {
  return concat(shown_version(build_version()), ", the driver is for ",
                shown_version(driver_version()));
}

bool can_access_peer(int from, int to) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
  return can != 0;
}

}  // namespace satrap::backend
