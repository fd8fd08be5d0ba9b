#pragma once

#include <cstdint>

#include "satrap/backend/memory.h"
#include "satrap/backend/views.h"

namespace satrap::backend {

/// Owns the memory of a window, of one cache. `stream` clears it: other streams must wait for that
/// before they use it. Throws Error(kUnavailable) if the device has no room.
///
/// To know the uses of L batches ahead, depth is L + 1: batch b + L is touched, then batch b is
/// resolved. As many entries of the directory as these batches have keys together are enough: 20
/// bytes per key. Six times the keys that the cache holds are a good length
/// (bench/journal/caches.md).
class Window {
 public:
  Window(Device& device, const WindowSize& size, StreamRef stream);
  const WindowView& view() const { return view_; }

  /// For ResolveArguments, of a batch that has been touched: what touches of later ones have found.
  const std::uint32_t* next_uses(std::uint32_t batch) const {
    return view_.next_uses + batch % view_.size.depth * view_.size.max_keys;
  }

 private:
  Arena arena_;
  WindowView view_;
};

}  // namespace satrap::backend
