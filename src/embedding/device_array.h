#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"

namespace satrap::embedding {

/// An array in a device's memory that the host writes without waiting, through pinned memory.
/// Reused, once the work that was queued with it is done.
template <class T>
class QueuedArray {
 public:
  explicit QueuedArray(backend::Device& device) : device_(&device) {}

  /// Queues the copy of new content.
  T* upload(std::span<const T> values, backend::StreamRef stream) {
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    make_room(pinned_, *device_, backend::Place::kPinnedHost, bytes, "a list for the device");
    make_room(memory_, *device_, backend::Place::kDevice, bytes, "a list for the device");
    std::ranges::copy(values, reinterpret_cast<T*>(pinned_.data()));
    device_->copy(memory_.data(), pinned_.data(), bytes, stream);
    return reinterpret_cast<T*>(memory_.data());
  }

 private:
  backend::Device* device_;
  backend::Memory pinned_, memory_;
};

/// What the host reads of an array in a device's memory, in pinned memory. Reused: allocates only
/// to grow.
template <class T>
class ReadArray {
 public:
  explicit ReadArray(backend::Device& device) : device_(&device) {}

  /// Queues the copy of values [begin, end) to the same places, or, where the memory has to grow,
  /// of all up to the end. They are there once the stream has done it.
  void queue(const T* values, std::int64_t begin, std::int64_t end, backend::StreamRef stream) {
    if (begin >= end) return;
    const auto size = static_cast<std::int64_t>(sizeof(T));
    if (end * size > pinned_.bytes()) begin = 0;
    make_room(pinned_, *device_, backend::Place::kPinnedHost, end * size, "a list of the device");
    device_->copy(pinned_.data() + begin * size, values + begin, (end - begin) * size, stream);
  }

  std::span<const T> first(std::int64_t count) const {
    return {reinterpret_cast<const T*>(pinned_.data()), static_cast<std::size_t>(count)};
  }

 private:
  backend::Device* device_;
  backend::Memory pinned_;
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
