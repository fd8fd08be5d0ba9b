#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "satrap/backend/stream.h"
#include "satrap/core/mutex.h"

namespace satrap::backend {

/// How long a device works on training steps: by events in the stream, which cost the host no
/// waiting. What one thread queues may come between what another does; each kind of work counts
/// from its begin to its end in the stream.
class StreamTimes {
 public:
  enum Kind : std::uint8_t { kLookup, kNetwork, kUpdate, kExchange, kNumKinds };
  static constexpr const char* kNames[kNumKinds] = {"lookup", "network", "update", "exchange"};

  /// Both outlive it.
  StreamTimes(Device& device, const Stream& stream) : device_(device), stream_(stream) {}

  /// Measures what is queued on the stream while it lives; nothing without `times`. One at a time
  /// of each kind.
  class Span {
   public:
    Span(StreamTimes* times, Kind kind);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    StreamTimes* times_;
    Kind kind_;
  };

  // Seconds of the work that has been found done by now.
  double seconds(Kind kind);
  // Seconds in which work of some kind was between its begin and its end; but for exchanges with
  // other ranks, which are mostly waits.
  double busy_seconds();

 private:
  struct Work {
    Work(Device& device, Kind of_kind)
        : kind(of_kind), begin(device, true), end(std::make_shared<Event>(device, true)) {}
    Kind kind;
    bool is_ended = false;
    Event begin;
    std::shared_ptr<Event> end;
  };
  void begin(Kind kind);
  void end(Kind kind) noexcept;
  void add_done() SATRAP_REQUIRES(mutex_);

  Device& device_;
  const Stream& stream_;
  Mutex mutex_;
  std::deque<std::unique_ptr<Work>> open_ SATRAP_GUARDED_BY(mutex_);  // in the order of their begin
  std::vector<std::unique_ptr<Work>> free_ SATRAP_GUARDED_BY(mutex_);
  std::shared_ptr<Event> latest_end_ SATRAP_GUARDED_BY(mutex_);  // of what has been added
  std::array<double, kNumKinds> seconds_ SATRAP_GUARDED_BY(mutex_){};
  double busy_seconds_ SATRAP_GUARDED_BY(mutex_) = 0.0;
};

}  // namespace satrap::backend
