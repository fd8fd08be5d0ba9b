#include <algorithm>
#include <cstring>

#include "src/backend/arguments.h"
#include "src/backend/host_device.h"

namespace satrap::backend {
namespace {

/// Calls move(slot, row in the cache, row in staging) for the rows of a chunk that have slots.
template <class Byte, class Move>
void for_each_row(const CacheView& cache,
                  const std::int32_t* slots,
                  std::int64_t count,
                  std::int64_t begin,
                  std::int64_t max_rows,
                  Byte* staging,
                  Move&& move) {
  for (std::int64_t i = begin; i < std::min(count, begin + max_rows); ++i) {
    if (slots[i] < 0) continue;
    move(slots[i], cache.rows + slots[i] * cache.layout.device_stride,
         staging + (i - begin) * cache.layout.row_bytes);
  }
}

}  // namespace

void HostDevice::gather_rows(const CacheView& cache,
                             const std::int32_t* slots,
                             const std::uint32_t* count,
                             std::int64_t begin,
                             std::int64_t max_rows,
                             std::byte* staging,
                             StreamRef) {
  for_each_row(cache, slots, *count, begin, max_rows, staging,
               [&](std::int32_t slot, const std::byte* row, std::byte* staged) {
                 cache.layout.from_device(row, staged);
                 if (slot >= cache.size.num_slots()) return;  // an overflow row
                 if (cache.dirty[slot] == kChanged) cache.dirty[slot] = kGathered;
               });
}

void HostDevice::scatter_rows(const CacheView& cache,
                              const std::int32_t* slots,
                              const std::uint32_t* count,
                              std::int64_t begin,
                              std::int64_t max_rows,
                              const std::byte* staging,
                              StreamRef) {
  for_each_row(cache, slots, *count, begin, max_rows, staging,
               [&](std::int32_t, std::byte* row, const std::byte* staged) {
                 cache.layout.to_device(staged, row);
               });
}

void HostDevice::load_rows(const CacheView& cache,
                           const std::int32_t* slots,
                           const std::uint32_t* count,
                           std::int64_t max_rows,
                           const std::byte* const* rows,
                           StreamRef) {
  for (std::int64_t i = 0; i < std::min<std::int64_t>(*count, max_rows); ++i) {
    if (slots[i] < 0) continue;
    cache.layout.to_device(rows[i], cache.rows + slots[i] * cache.layout.device_stride);
  }
}

void HostDevice::list_slots(const CacheView& cache,
                            ListMode mode,
                            std::int64_t first_set,
                            std::int64_t num_sets,
                            const SlotList& list,
                            StreamRef) {
  check_arguments(cache, first_set, num_sets);
  *list.count = 0;
  const std::int64_t end = (first_set + num_sets) * CacheSize::kWays;
  for (std::int64_t slot = first_set * CacheSize::kWays; slot < end; ++slot) {
    if (cache.digests[slot] == 0) continue;
    if (mode == ListMode::kDirty && cache.dirty[slot] == kClean) continue;
    list.slots[*list.count] = static_cast<std::int32_t>(slot);
    list.keys[(*list.count)++] = key_of_tag(cache.tags[slot]);
  }
}

void HostDevice::mark_clean(const CacheView& cache, const SlotList& list, StreamRef) {
  for (std::uint32_t i = 0; i < *list.count; ++i) {
    std::uint8_t& mark = cache.dirty[list.slots[i]];
    if (mark == kGathered) mark = kClean;
  }
}

}  // namespace satrap::backend
