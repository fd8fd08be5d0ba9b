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
    Slot& slot = slot_of(authority, stall_s);
    std::lock_guard lock(slot.opening);  // which may take long, and concerns no other store
    if (!slot.store) slot.store = open(authority, stall_s);
    return *slot.store;
  }

  void clear() { slots_.clear(); }

 private:
  struct Slot {
    std::mutex opening;
    std::unique_ptr<Store> store;
  };

  Slot& slot_of(const std::string& authority, double stall_s) {
    std::lock_guard lock(mutex_);
    return slots_[{authority, stall_s}];
  }

  std::mutex mutex_;
  std::map<std::pair<std::string, double>, Slot> slots_;
};

}  // namespace satrap::data
