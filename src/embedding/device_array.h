#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"

namespace satrap::embedding {

/// An array in a device's memory that is written by the host. Reused: allocates only to grow.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(backend::Device& device) : device_(&device) {}

  /// Replaces the content; blocks until it is there. No queued work may still read the old one.
  T* upload(std::span<const T> values, const backend::Stream& stream) {
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    if (bytes > memory_.bytes()) {
      memory_ = {};
      memory_ = {*device_, backend::Place::kDevice, bytes + bytes / 4, "a list for the device"};
    }
    if (bytes == 0) return data();
    device_->copy(memory_.data(), values.data(), bytes, stream);
    stream.wait_until_idle();
    return data();
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }

 private:
  backend::Device* device_;
  backend::Memory memory_;
};

/// `count` values of the device's memory. Blocks until the work queued before is done.
template <class T>
std::vector<T> download(backend::Device& device,
                        const T* values,
                        std::int64_t count,
                        const backend::Stream& stream) {
  std::vector<T> found(static_cast<std::size_t>(count));
  device.copy(found.data(), values, count * static_cast<std::int64_t>(sizeof(T)), stream);
  stream.wait_until_idle();
  return found;
}

}  // namespace satrap::embedding
