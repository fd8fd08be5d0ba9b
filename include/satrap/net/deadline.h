#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace satrap::net {

/// The latest moment at which an operation may end. Every wait of this module has one.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Clock::time_point at) : at_(at) {}
  static Deadline after_ms(std::int64_t timeout_ms) {
    return Deadline(Clock::now() + std::chrono::milliseconds(timeout_ms));
  }

  Clock::time_point at() const { return at_; }
  bool has_passed() const { return Clock::now() >= at_; }

  /// Milliseconds left, rounded up, never negative.
  std::int64_t remaining_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now());
    return std::max<std::int64_t>(0, left.count());
  }

  /// The earlier of this moment and `timeout_ms` from now.
  Deadline at_most_ms(std::int64_t timeout_ms) const {
    return Deadline(std::min(at_, after_ms(timeout_ms).at_));
  }

 private:
  Clock::time_point at_;
};

}  // namespace satrap::net
