#include <algorithm>
#include <cstdint>

#include "src/backend/arguments.h"
#include "src/backend/host_device.h"
#include "src/backend/host_sets.h"

namespace satrap::backend {
namespace {

constexpr std::int64_t kTouchAhead = 8;  // keys whose sets are being loaded

/// The first entry of the key's set of the directory.
std::int64_t first_entry(const WindowView& window, std::uint64_t tag) {
  return host_set_of(tag, window.size.num_sets) * CacheSize::kWays;
}

/// The entry of a key: its own, else that of the key seen longest ago, the first of equals.
std::int64_t entry_of(const WindowView& window, std::uint64_t tag) {
  const std::int64_t first = first_entry(window, tag);
  const std::uint64_t* const tags = window.tags + first;
  const std::uint32_t* const batches = window.batches + first;
  std::int64_t own = -1;  // without an early end, the loop compares several at once
  for (std::int64_t way = 0; way < CacheSize::kWays; ++way) {
    own = tags[way] == tag && batches[way] != 0 ? way : own;
  }
  return first + (own >= 0 ? own : std::min_element(batches, batches + CacheSize::kWays) - batches);
}

void load_ahead(const CacheView& cache, const WindowView& window, std::uint64_t tag) {
  const std::int64_t first = first_entry(window, tag);
  for (std::int64_t way = 0; way < CacheSize::kWays; way += 8) {
    __builtin_prefetch(window.tags + first + way, 1);
  }
  __builtin_prefetch(window.batches + first, 1);
  __builtin_prefetch(window.batches + first + 16, 1);
  __builtin_prefetch(cache.digests + host_set_of(tag, cache.size.num_sets) * CacheSize::kWays);
}

}  // namespace

void HostDevice::touch(const Touch& operation, StreamRef) {
  check_arguments(operation);
  const auto& [cache, window, plan, arguments] = operation;
  if (plan.num_ids == 0) return;
  const auto [batch, resolved] = arguments;
  const std::int64_t unique = plan.counts->unique;
  const std::int64_t line = batch % window.size.depth * window.size.max_keys;
  std::fill_n(window.next_uses + line, std::min(unique, window.size.max_keys), 0U);
  for (std::int64_t u = 0; u < unique; ++u) {
    if (u + kTouchAhead < unique) load_ahead(cache, window, plan.unique_tags[u + kTouchAhead]);
    const std::uint64_t tag = plan.unique_tags[u];
    const std::int64_t slot = host_find(cache, tag);
    if (slot >= 0 && cache.next_use[slot] <= resolved) cache.next_use[slot] = batch;
    const std::int64_t entry = entry_of(window, tag);
    if (window.tags[entry] == tag && window.batches[entry] > resolved &&
        window.notes[entry] != WindowView::kNoNote) {
      window.next_uses[window.notes[entry]] = batch;
    }
    window.tags[entry] = tag;
    window.batches[entry] = batch;
    window.notes[entry] =
        u < window.size.max_keys ? static_cast<std::uint32_t>(line + u) : WindowView::kNoNote;
  }
}

}  // namespace satrap::backend
