#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace satrap::data {

/// A pass over the data before the first step: says in the log how far it is, and ends at a signal.
/// One thread at a time.
class PassProgress {
 public:
  /// `what` is done: "counting rows (data.eval.by: tail)". `total_bytes`, 0: unknown. `stop` may be
  /// null.
  PassProgress(std::string what, std::int64_t total_bytes, const std::atomic<bool>* stop);

  /// To be called for every block. Throws Error(kIo) once `stop` is set.
  void note(std::int64_t bytes_read);

 private:
  using Clock = std::chrono::steady_clock;

  const std::string what_;
  const std::int64_t total_bytes_;
  const std::atomic<bool>* const stop_;
  Clock::time_point next_;
};

}  // namespace satrap::data
