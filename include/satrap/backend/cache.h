#pragma once

#include <cstdint>

#include "satrap/backend/memory.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// Owns the memory of a cache on the device. `stream` clears it: other streams must wait for that
/// before they use it. Throws Error(kUnavailable) with the arithmetic if the device has no room.
class Cache {
 public:
  Cache(Device& device,
        const RowLayout& layout,
        const CacheSize& size,
        EvictionPolicy policy,
        StreamRef stream);
  const CacheView& view() const { return view_; }

 private:
  Arena arena_;
  CacheView view_;
};

}  // namespace satrap::backend
