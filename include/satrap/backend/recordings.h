#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "satrap/backend/stream.h"

namespace satrap::backend {

/// Queues work on a stream of a device; what comes again and again with the same arguments is
/// recorded, and then takes the host one call instead of one for each kernel. Used by one thread.
class Recordings {
 public:
  /// Queues the work on `stream`. `is_recorded`: there it only gets into a recording, which runs
  /// later, and more than once.
  using Queue = std::function<void(StreamRef stream, bool is_recorded)>;

  /// With more sets of arguments than this in turn, the one used longest ago makes room.
  static constexpr std::size_t kMax = 64;
  /// So often work is only queued: libraries then load kernels and take memory of their own.
  static constexpr int kRunsBefore = 2;

  /// Both outlive it. On the host nothing is recorded.
  Recordings(Device& device, const Stream& stream) : device_(device), stream_(stream) {}

  /// `arguments`: all numbers and addresses that the work depends on. Calls `queue` at once, unless
  /// the work has been recorded.
  void run(std::span<const std::byte> arguments, const Queue& queue);

 private:
  struct Entry {
    std::vector<std::byte> arguments;
    int num_runs = 0;
    std::int64_t last_run = 0;
    std::optional<Recording> recording;
  };
  Entry& entry_of(std::span<const std::byte> arguments);

  Device& device_;
  const Stream& stream_;
  std::optional<Stream> recorder_;  // others may queue on `stream_` meanwhile
  std::vector<Entry> entries_;
  std::int64_t num_runs_ = 0;
};

}  // namespace satrap::backend
