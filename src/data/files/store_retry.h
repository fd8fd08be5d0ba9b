#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "src/data/files/object_store.h"
#include "src/data/files/remote_url.h"

namespace satrap::data {

/// Decides whether a failed request to a store is made again: pauses grow, until
/// SATRAP_REMOTE_TIMEOUT has passed since the beginning, or half of it since the first failure (an
/// upload may take long). One object is for one request.
class StoreRetry {
 public:
  /// `verb` and `url` are for messages: "cannot read 's3://bucket/key'".
  StoreRetry(const char* verb, std::string url, const IsCancelled& is_cancelled);
  StoreRetry(const StoreRetry&) = delete;
  StoreRetry& operator=(const StoreRetry&) = delete;

  /// Begins a try. The result tells when a request that reads must end: it has taken half of the
  /// timeout, since it may be stuck, or nobody waits any more. It outlives the try.
  const IsCancelled& begin_try();

  /// Returns when it is time for another try. Throws Error(kIo) if that does not help, time is over
  /// or nobody waits any more.
  void wait_after(const StoreFailure& failure);

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] void refuse(const StoreFailure& failure) const;

  const char* const verb_;
  const std::string url_;
  const IsCancelled& is_cancelled_;
  const double timeout_s_;
  const double try_s_;  // that a try may last
  const Clock::time_point began_ = Clock::now();
  const IsCancelled is_over_;
  Clock::time_point end_of_try_;
  bool is_late_ = false;                       // the try has lasted for so long
  std::optional<Clock::time_point> deadline_;  // once a try has failed
  std::chrono::milliseconds pause_;
  std::uint64_t tries_ = 0;
};

/// Calls call(is_over), as StoreRetry::begin_try says, until it succeeds or StoreRetry says that it
/// will not.
template <class Call>
decltype(auto) tried_again(const std::string& url,
                           const IsCancelled& is_cancelled,
                           const Call& call,
                           const char* verb = "read") {
  StoreRetry retry(verb, url, is_cancelled);
  for (;;) {
    try {
      return call(retry.begin_try());
    } catch (const StoreFailure& failure) {
      retry.wait_after(failure);
    }
  }
}

/// The store of a URL, whose requests end when they make no progress for SATRAP_REMOTE_STALL.
ObjectStore& store_of(const RemoteUrl& url,
                      const IsCancelled& is_cancelled,
                      const char* verb = "read");

}  // namespace satrap::data
