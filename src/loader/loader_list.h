#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "satrap/core/mutex.h"
#include "satrap/net/rendezvous.h"

namespace satrap::loader {

struct LoaderEntry {
  std::int64_t number = 0;
  std::string address;  // net::Server::address
};

/// The loaders that a rank knows, over all passes. Thread-safe.
class LoaderList {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LoaderList(std::shared_ptr<net::Rendezvous> store) : store_(std::move(store)) {}

  /// The loaders with an entry in the store, except for those that rest. In ascending order. One
  /// without an entry has ended or is about to enter itself; it rests for kAgainMissing.
  std::vector<LoaderEntry> find(Clock::time_point now);

  /// The loader rests for kAgain: one that was killed has left its entry, and one that hung may
  /// work again.
  void lose(std::int64_t number, Clock::time_point now);

  /// Ends all rests, and what is known of them.
  void forget_losses();

  static constexpr std::chrono::seconds kAgain{60};
  static constexpr std::chrono::seconds kAgainMissing{1};
  static constexpr std::chrono::seconds kMaxRest{3600};

 private:
  struct Rest {
    Clock::duration length{0};
    Clock::time_point end;
  };

  bool rests(std::int64_t number, Clock::time_point now);
  void rest(std::int64_t number, Clock::duration first, Clock::time_point now);

  const std::shared_ptr<net::Rendezvous> store_;
  Mutex mutex_;
  std::map<std::int64_t, Rest> rests_ SATRAP_GUARDED_BY(mutex_);  // by number
};

}  // namespace satrap::loader
