#pragma once

#include <cstdint>
#include <span>

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

/// Copies values of the device's memory to the host; blocks until the work queued before is done.
template <class T>
void download(backend::Device& device,
              const T* values,
              std::span<T> to,
              const backend::Stream& stream) {
  device.copy(to.data(), values, static_cast<std::int64_t>(to.size_bytes()), stream);
  stream.wait_until_idle();
}
template <class T>
T download_one(backend::Device& device, const T* value, const backend::Stream& stream) {
  T found;
  download(device, value, std::span(&found, 1), stream);
  return found;
}

}  // namespace satrap::embedding
