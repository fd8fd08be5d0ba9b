#include <algorithm>
#include <cstring>

#include "src/backend/arguments.h"
#include "src/backend/host_device.h"

namespace satrap::backend {
namespace {

/// Calls move(slot, row in the cache, row in staging) for the rows of a chunk that have slots.
template <class Byte, class Move>
void for_each_row(const CacheView& cache, const SlotRange& range, Byte* staging, Move&& move) {
  const auto& [slots, count, begin, max_rows] = range;
  for (std::int64_t i = begin; i < std::min<std::int64_t>(*count, begin + max_rows); ++i) {
    if (slots[i] < 0) continue;
    move(slots[i], cache.rows + slots[i] * cache.layout.device_stride,
         staging + (i - begin) * cache.layout.row_bytes);
  }
}

}  // namespace

void HostDevice::gather_rows(const GatherRows& operation, StreamRef) {
  const CacheView& cache = operation.cache;
  for_each_row(cache, operation.from, operation.staging,
               [&](std::int32_t slot, const std::byte* row, std::byte* staged) {
                 cache.layout.from_device(row, staged);
                 if (slot >= cache.size.num_slots()) return;  // an overflow row
                 if (cache.dirty[slot] == kChanged) cache.dirty[slot] = kGathered;
               });
}

void HostDevice::scatter_rows(const ScatterRows& operation, StreamRef) {
  for_each_row(operation.cache, operation.to, operation.staging,
               [&](std::int32_t, std::byte* row, const std::byte* staged) {
                 operation.cache.layout.to_device(staged, row);
               });
}

void HostDevice::load_rows(const LoadRows& operation, StreamRef) {
  const auto& [cache, slots, count, max_rows, rows] = operation;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(*count, max_rows); ++i) {
    if (slots[i] < 0) continue;
    cache.layout.to_device(rows[i], cache.rows + slots[i] * cache.layout.device_stride);
  }
}

void HostDevice::list_slots(const ListSlots& operation, StreamRef) {
  check_arguments(operation);
  const auto& [cache, first_set, num_sets, list] = operation;
  *list.count = 0;
  const std::int64_t end = (first_set + num_sets) * CacheSize::kWays;
  for (std::int64_t slot = first_set * CacheSize::kWays; slot < end; ++slot) {
    if (cache.digests[slot] == 0 || cache.dirty[slot] == kClean) continue;
    list.slots[*list.count] = static_cast<std::int32_t>(slot);
    list.keys[(*list.count)++] = key_of_tag(cache.tags[slot]);
  }
}

void HostDevice::mark_clean(const MarkClean& operation, StreamRef) {
  const auto& [cache, list] = operation;
  for (std::uint32_t i = 0; i < *list.count; ++i) {
    std::uint8_t& mark = cache.dirty[list.slots[i]];
    if (mark == kGathered) mark = kClean;
  }
}

}  // namespace satrap::backend
