#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "satrap/core/log.h"

namespace satrap::net {

/// Reports connections that a server has refused, the first at once and then a line with their
/// number every ten seconds at most: whoever scans ports must not fill the log. One thread.
class Refusals {
 public:
  explicit Refusals(std::string server) : server_(std::move(server)) {}
  ~Refusals() { report(); }
  Refusals(const Refusals&) = delete;
  Refusals& operator=(const Refusals&) = delete;

  void add(const std::string& peer, const std::string& reason) {
    ++num_total_;
    ++num_unreported_;
    last_ = peer + ": " + reason;
    report_if_due();
  }

  /// To be called now and then.
  void report_if_due() {
    if (Clock::now() >= next_) report();
  }

  std::int64_t num_total() const { return num_total_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kInterval{10};

  void report() {
    if (num_unreported_ == 1) {
      log_warning("{}: refused {}", server_, last_);
    } else if (num_unreported_ > 1) {
      log_warning("{}: refused {} connections ({} in all), the last: {}", server_, num_unreported_,
                  num_total_, last_);
    } else {
      return;
    }
    num_unreported_ = 0;
    next_ = Clock::now() + kInterval;
  }

  const std::string server_;
  std::int64_t num_total_ = 0, num_unreported_ = 0;
  std::string last_;
  Clock::time_point next_{};
};

}  // namespace satrap::net
