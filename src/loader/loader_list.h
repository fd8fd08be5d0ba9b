#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "satrap/net/store.h"

namespace satrap::loader {

/// The loaders that a rank knows, over all passes. Thread-safe.
class LoaderList {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LoaderList(std::shared_ptr<net::Store> store) : store_(std::move(store)) {}

  /// The loaders with an entry in the store, except for those that were lost within kAgain: one
  /// that was killed has left its entry, and one that hung may work again. In ascending order.
  std::vector<std::int64_t> find();

  /// Whether find() now has others than `used`.
  bool has_others(const std::vector<std::int64_t>& used);

  void lose(std::int64_t number);
  /// All that were lost may be tried again.
  void forget_losses();

  static constexpr std::chrono::seconds kAgain{60};

 private:
  const std::shared_ptr<net::Store> store_;
  std::mutex mutex_;
  std::map<std::int64_t, Clock::time_point> lost_;
};

}  // namespace satrap::loader
