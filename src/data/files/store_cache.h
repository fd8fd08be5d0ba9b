#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "satrap/core/mutex.h"
#include "src/data/files/object_store.h"

namespace satrap::data {

/// The stores that a library has opened. Thread-safe.
class StoreCache {
 public:
  using Open = std::unique_ptr<ObjectStore> (*)(const std::string& authority, double stall_s);

  ObjectStore& find_or_open(const std::string& authority, double stall_s, Open open) {
    Slot& slot = slot_of(authority, stall_s);
    const MutexLock lock(slot.opening);  // which may take long, and concerns no other store
    if (!slot.store) slot.store = open(authority, stall_s);
    return *slot.store;
  }

  void clear() {
    const MutexLock lock(mutex_);
    slots_.clear();
  }

 private:
  struct Slot {
    Mutex opening;
    std::unique_ptr<ObjectStore> store SATRAP_GUARDED_BY(opening);
  };

  Slot& slot_of(const std::string& authority, double stall_s) {
    const MutexLock lock(mutex_);
    return slots_[{authority, stall_s}];
  }

  Mutex mutex_;
  std::map<std::pair<std::string, double>, Slot> slots_ SATRAP_GUARDED_BY(mutex_);
};

}  // namespace satrap::data
