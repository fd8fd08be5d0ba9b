#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "src/data/store.h"

namespace satrap::data {

/// The stores that a library has opened. Thread-safe.
class StoreCache {
 public:
  using Open = std::unique_ptr<Store> (*)(const std::string& authority, double stall_s);

  Store& find_or_open(const std::string& authority, double stall_s, Open open) {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Store>& store = stores_[{authority, stall_s}];
    if (!store) store = open(authority, stall_s);
    return *store;
  }

  void clear() { stores_.clear(); }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, double>, std::unique_ptr<Store>> stores_;
};

}  // namespace satrap::data
