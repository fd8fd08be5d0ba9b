#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"

/// The device of the tests of device operations. The same tests are linked with the host
/// (device_host.cpp), with CUDA's kernels on the SIMT executor (device_simt.cpp) or as PTX
/// (device_simt.cpp and support/ptx/environment.cpp), and with a GPU (device_gpu.cpp).
namespace satrap::testing {

/// Empty if tests can run, else the reason to skip them. If SATRAP_REQUIRE_GPU=1 requires a GPU and
/// there is none, the reason is a failure.
struct Readiness {
  std::string reason;
  bool fails = false;
};
Readiness device_readiness();

/// The device under test; call only if it is ready.
backend::Device& device();

/// Runs `check` under every schedule: eight seeded ones on the executor, one on a device.
void for_each_schedule(const std::function<void()>& check);

/// A device array with the content of a vector, copied at once.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t count)
      : memory_(device(),
                backend::Place::kDevice,
                count * static_cast<std::int64_t>(sizeof(T)),
                "a test's array"),
        count_(count) {}
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(static_cast<std::int64_t>(values.size())) {
    if (!values.empty()) {
      device().copy(memory_.data(), static_cast<const void*>(values.data()), memory_.bytes(),
                    stream_);
      stream_.wait_until_idle();
    }
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::vector<T> host() const { return download(data(), count_); }

  static std::vector<T> download(const T* data, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    const backend::Stream stream(device());
    device().copy(values.data(), data, count * static_cast<std::int64_t>(sizeof(T)), stream);
    stream.wait_until_idle();
    return values;
  }

 private:
  backend::Memory memory_;
  std::int64_t count_;
  backend::Stream stream_{device()};
};

template <class T>
std::vector<T> download(const T* data, std::int64_t count) {
  return DeviceArray<T>::download(data, count);
}

}  // namespace satrap::testing

/// First line of every test of a device operation.
#define SATRAP_NEEDS_DEVICE()                                        \
  do {                                                               \
    const auto readiness = ::satrap::testing::device_readiness();    \
    if (readiness.fails) FAIL() << readiness.reason;                 \
    if (!readiness.reason.empty()) GTEST_SKIP() << readiness.reason; \
  } while (false)
