#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "satrap/backend/device.h"

namespace satrap::backend {

/// Owns memory of a device, or pinned memory of the host. Not initialised.
class Memory {
 public:
  Memory() = default;
  /// Throws Error(kUnavailable), naming the purpose, the bytes requested and the bytes available.
  Memory(Device& device, Place place, std::int64_t bytes, const char* what)
      : device_(&device),
        data_(device.allocate(place, bytes, what)),
        bytes_(bytes),
        place_(place) {}
  ~Memory() {
    if (data_ != nullptr) device_->free(place_, data_);
  }
  Memory(Memory&& other) noexcept
      : device_(other.device_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        place_(other.place_) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(place_, other.place_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Place place_ = Place::kDevice;
};

/// Registers memory of the host, which must outlive it, so that kernels read it where it is. It is
/// done in pieces, between which other threads can map memory, and of which none is too large for
/// a driver. It blocks until all pages are resident.
class HostRegistration {
 public:
  HostRegistration(Device& device, std::byte* memory, std::int64_t bytes)
      : device_(device), memory_(memory) {
    while (registered_ < bytes) {
      why_not_ =
          device.register_host(memory + registered_, std::min(kPieceBytes, bytes - registered_));
      if (!why_not_.empty()) {
        unregister();
        return;
      }
      registered_ += kPieceBytes;
    }
  }
  ~HostRegistration() { unregister(); }
  HostRegistration(const HostRegistration&) = delete;
  HostRegistration& operator=(const HostRegistration&) = delete;

  const std::string& why_not() const { return why_not_; }  // empty: it is registered

 private:
  static constexpr std::int64_t kPieceBytes = std::int64_t{1} << 30;

  void unregister() {
    for (; registered_ > 0; registered_ -= kPieceBytes) {
      device_.unregister_host(memory_ + registered_ - kPieceBytes);
    }
  }

  Device& device_;
  std::byte* const memory_;
  std::int64_t registered_ = 0;  // a multiple of kPieceBytes; the last piece may be smaller
  std::string why_not_;
};

/// Gives memory room for so many bytes, and some more if it has to grow, without keeping its
/// content. What is queued may still use the old memory, for which Device::free waits.
inline void make_room(Memory& memory,
                      Device& device,
                      Place place,
                      std::int64_t bytes,
                      const char* what) {
  if (bytes <= memory.bytes()) return;
  memory = {};
  memory = {device, place, bytes + bytes / 4, what};
}

/// Divides one allocation into parts, so that a step allocates nothing and no memory moves from one
/// stream to another by accident. Parts live as long as the arena.
class Arena {
 public:
  /// Every part begins at a multiple of this.
  static constexpr std::int64_t kAlignment = 256;

  Arena(Device& device, Place place, std::int64_t bytes, const char* what);

  /// Room for `count` T, not initialised. Throws Error(kInternal) if the arena was made too small.
  template <class T>
  T* take(std::int64_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    return static_cast<T*>(take_bytes(count * static_cast<std::int64_t>(sizeof(T))));
  }
  std::int64_t used_bytes() const { return used_; }
  std::int64_t capacity_bytes() const { return memory_.bytes(); }

 private:
  void* take_bytes(std::int64_t bytes);

  Memory memory_;
  const char* what_;
  std::int64_t used_ = 0;
};

/// The bytes of an arena that `count` T take.
template <class T>
constexpr std::int64_t arena_bytes(std::int64_t count) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

}  // namespace satrap::backend
