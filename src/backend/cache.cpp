#include "satrap/backend/cache.h"

#include "satrap/core/error.h"

namespace satrap::backend {

namespace {

std::int64_t arena_size(const RowLayout& layout, const CacheSize& size) {
  const std::int64_t slots = size.num_slots();
  return arena_bytes<std::byte>(size.total_slots() * layout.device_stride) +
         arena_bytes<std::uint64_t>(slots) + 3 * arena_bytes<std::uint32_t>(slots) +
         2 * arena_bytes<std::uint8_t>(slots);
}

/// Checked before the allocation, for a message that shows the arithmetic.
std::int64_t checked_size(const Device& device, const RowLayout& layout, const CacheSize& size) {
  check_dim(layout);
  const std::int64_t bytes = arena_size(layout, size);
  const DeviceInfo info = device.info();
  if (bytes > info.free_bytes) {
    throw Error(ErrorCode::kUnavailable,
                concat("a cache of ", size.num_sets, " sets of ", CacheSize::kWays, " rows and ",
                       size.overflow_rows, " overflow rows, ", layout.device_stride, " + ",
                       CacheSize::kBookkeepingBytes, " bytes each, is ", bytes, " bytes; ",
                       info.name, " has ", info.free_bytes, " of ", info.memory_bytes, " free"));
  }
  return bytes;
}

}  // namespace

Cache::Cache(Device& device,
             const RowLayout& layout,
             const CacheSize& size,
             EvictionPolicy policy,
             StreamRef stream)
    : arena_(device, Place::kDevice, checked_size(device, layout, size), "the device cache") {
  const std::int64_t slots = size.num_slots();
  view_.layout = layout;
  view_.size = size;
  view_.policy = policy;
  view_.rows = arena_.take<std::byte>(size.total_slots() * layout.device_stride);
  view_.tags = arena_.take<std::uint64_t>(slots);
  view_.last_needed = arena_.take<std::uint32_t>(slots);
  view_.frequency = arena_.take<std::uint32_t>(slots);
  view_.next_use = arena_.take<std::uint32_t>(slots);
  view_.digests = arena_.take<std::uint8_t>(slots);
  view_.dirty = arena_.take<std::uint8_t>(slots);
  device.fill(view_.last_needed, 0, slots * 4, stream);
  device.fill(view_.frequency, 0, slots * 4, stream);
  device.fill(view_.next_use, 0, slots * 4, stream);
  device.fill(view_.digests, 0, slots, stream);
  device.fill(view_.dirty, 0, slots, stream);
}

}  // namespace satrap::backend
