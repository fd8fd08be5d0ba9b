#pragma once

#include <cstdint>
#include <string>

namespace satrap::backend {

/// A GPU as this process sees it.
struct DeviceInfo {
  std::string name;
  int compute_capability = 0;  // 90 for sm_90
  int num_multiprocessors = 0;
  std::int64_t memory_bytes = 0, free_bytes = 0, l2_bytes = 0;
  int driver_version = 0;  // 13000 for CUDA 13.0
};

/// Empty where a GPU can be used, else why not: no CUDA in this build, no driver, no device.
std::string why_unavailable();

/// The device the calling thread uses. Throws Error(kUnavailable).
DeviceInfo device_info();

/// A stream to queue work on; the default one unless it comes from a Stream. Does not own it.
struct StreamRef {
  void* handle = nullptr;
};

/// Owns a stream. Work of one stream runs in order, that of different streams in any.
class Stream {
 public:
  enum class Priority { kNormal, kHigh };
  explicit Stream(Priority priority = Priority::kNormal);
  ~Stream();
  Stream(Stream&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Stream& operator=(Stream&&) = delete;

  operator StreamRef() const { return {handle_}; }
  void wait_until_idle() const;  // blocks the calling thread

 private:
  void* handle_ = nullptr;
};

/// Owns an event: a mark in a stream that others can wait for.
class Event {
 public:
  explicit Event(bool with_time = false);
  ~Event();
  Event(Event&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Event& operator=(Event&&) = delete;

  void record(StreamRef stream);
  /// Holds back what is queued on `stream` from now on until the last record is reached.
  void hold_back(StreamRef stream) const;
  bool is_reached() const;  // never blocks
  void wait_until_reached() const;
  /// Between the records of two events with time, both reached.
  static double milliseconds_between(const Event& start, const Event& stop);

 private:
  void* handle_ = nullptr;
};

}  // namespace satrap::backend
