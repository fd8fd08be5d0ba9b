#include "satrap/backend/window.h"

#include "satrap/core/error.h"

namespace satrap::backend {

namespace {

std::int64_t arena_size(const WindowSize& size) {
  SATRAP_CHECK(size.depth > 0 && size.max_keys > 0 && size.num_sets > 0, "a window of ", size.depth,
               " batches of ", size.max_keys, " keys, and ", size.num_sets, " sets");
  SATRAP_CHECK(size.depth <= WindowView::kNoNote / size.max_keys, "a window of ", size.depth,
               " batches of ", size.max_keys, " keys: more than 2^32 next uses");
  const std::int64_t entries = size.num_sets * CacheSize::kWays;
  return arena_bytes<std::uint32_t>(size.depth * size.max_keys) +
         arena_bytes<std::uint64_t>(entries) + 2 * arena_bytes<std::uint32_t>(entries);
}

}  // namespace

Window::Window(Device& device, const WindowSize& size, StreamRef stream)
    : arena_(device, Place::kDevice, arena_size(size), "the window of a cache") {
  const std::int64_t entries = size.num_sets * CacheSize::kWays;
  view_.size = size;
  view_.next_uses = arena_.take<std::uint32_t>(size.depth * size.max_keys);
  view_.tags = arena_.take<std::uint64_t>(entries);
  view_.batches = arena_.take<std::uint32_t>(entries);
  view_.notes = arena_.take<std::uint32_t>(entries);
  device.fill(view_.next_uses, 0, size.depth * size.max_keys * 4, stream);
  device.fill(view_.tags, 0, entries * 8, stream);
  device.fill(view_.batches, 0, entries * 4, stream);
}

}  // namespace satrap::backend
