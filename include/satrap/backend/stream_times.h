#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "satrap/backend/stream.h"

namespace satrap::backend {

/// How long a device works on a training step: by events in the stream, which cost the host no
/// waiting. Several threads may measure different kinds of work at a time.
class StreamTimes {
 public:
  enum Kind : std::uint8_t { kLookup, kNetwork, kUpdate, kNumKinds };
  static constexpr const char* kNames[kNumKinds] = {"lookup", "network", "update"};

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

  /// Of what has been found done.
  double seconds(Kind kind);
  double seconds();  // of all kinds

 private:
  struct Marks {
    explicit Marks(Device& device) : begin(device, true), end(device, true) {}
    Event begin, end;
  };
  struct Work {
    std::deque<Marks> open, free;  // open: the last one may not have ended
    bool is_ended = true;
    double seconds = 0.0;
  };
  void begin(Kind kind);
  void end(Kind kind) noexcept;
  void add_done(Work& work);

  Device& device_;
  const Stream& stream_;
  std::mutex mutex_;
  std::array<Work, kNumKinds> work_;
};

}  // namespace satrap::backend
