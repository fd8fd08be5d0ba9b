#pragma once

#include <utility>

#include "satrap/backend/device.h"

namespace satrap::backend {

/// Owns a stream. Work of one stream runs in order; work of different streams runs in any order.
class Stream {
 public:
  enum class Priority { kNormal, kHigh };
  explicit Stream(Device& device, Priority priority = Priority::kNormal)
      : device_(&device), handle_(device.make_stream(priority == Priority::kHigh)) {}
  ~Stream() {
    if (device_ != nullptr) device_->destroy_stream(handle_);
  }
  Stream(Stream&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), handle_(other.handle_) {}
  Stream& operator=(Stream&&) = delete;

  operator StreamRef() const { return {handle_}; }
  void wait_until_idle() const { device_->wait_until_idle(*this); }  // blocks the calling thread

 private:
  Device* device_;
  void* handle_;
};

/// Owns an event: a mark in a stream that others can wait for.
class Event {
 public:
  explicit Event(Device& device, bool with_time = false)
      : device_(&device), handle_(device.make_event(with_time)) {}
  ~Event() {
    if (device_ != nullptr) device_->destroy_event(handle_);
  }
  Event(Event&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), handle_(other.handle_) {}
  Event& operator=(Event&&) = delete;

  void record(StreamRef stream) { device_->record(handle_, stream); }

  /// Work queued on `stream` from now on waits until the last record is reached.
  void make_wait(StreamRef stream) const { device_->make_wait(stream, handle_); }
  bool is_reached() const { return device_->is_reached(handle_); }  // never blocks
  void wait_until_reached() const { device_->wait_until_reached(handle_); }

  /// Time between the records of two events with time, both reached.
  static double milliseconds_between(const Event& start, const Event& stop) {
    return start.device_->milliseconds_between(start.handle_, stop.handle_);
  }

 private:
  Device* device_;
  void* handle_;
};

/// Owns work that was queued once, to be queued again as a whole, which takes the host one call.
class Recording {
 public:
  /// Records what `queue(stream)` queues, on a stream that nothing else uses meanwhile. `queue`
  /// must not wait, and uses the device through this stream alone. The memory of what it queues
  /// must live as long as the recording.
  template <class Queue>
  Recording(Device& device, StreamRef stream, Queue queue) : device_(&device) {
    device.begin_recording(stream);
    try {
      queue(stream);
    } catch (...) {
      device.abandon_recording(stream);
      throw;
    }
    handle_ = device.end_recording(stream);
  }
  ~Recording() {
    if (device_ != nullptr) device_->destroy_recording(handle_);
  }
  Recording(Recording&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), handle_(other.handle_) {}
  Recording& operator=(Recording&&) = delete;

  void queue(StreamRef stream) const { device_->queue_recording(handle_, stream); }

 private:
  Device* device_;
  void* handle_ = nullptr;
};

}  // namespace satrap::backend
