#pragma once

#include <algorithm>
#include <array>
#include <atomic>
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
    Deadline earlier = *this;
    earlier.at_ = std::min(at_, after_ms(timeout_ms).at_);
    return earlier;
  }

  /// `timeout_ms` from now instead, for a last answer that is on its way; with the same stops.
  Deadline extended_to_ms(std::int64_t timeout_ms) const {
    Deadline later = *this;
    later.at_ = after_ms(timeout_ms).at_;
    return later;
  }

  /// The same moment for a search that `stop` ends early: waiting for a store, for a server or for
  /// other ranks then throws NetError(kStopped) within kStopMs. What is there already is still
  /// found, and calls to a peer that is connected are not ended. At most two flags, of which each
  /// outlives the wait.
  Deadline unless(const std::atomic<bool>& stop) const {
    Deadline other = *this;
    (other.stops_[0] == nullptr ? other.stops_[0] : other.stops_[1]) = &stop;
    return other;
  }
  bool is_stopped() const {
    return std::ranges::any_of(stops_, [](const auto* stop) { return stop != nullptr && *stop; });
  }
  static constexpr std::int64_t kStopMs = 200;

 private:
  Clock::time_point at_;
  std::array<const std::atomic<bool>*, 2> stops_{};
};

}  // namespace satrap::net
