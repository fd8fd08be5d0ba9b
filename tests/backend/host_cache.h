#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "satrap/backend/operations.h"

namespace satrap::testing {

/// A simple host version of the cache, one key after the other: resolve must give the same.
class HostCache {
 public:
  struct Way {
    bool occupied = false, dirty = false;
    std::uint64_t tag = 0;
    std::uint32_t last_needed = 0, frequency = 0;
  };
  /// The overflow rows of a batch: those it may use, and those of earlier batches.
  struct Overflow {
    std::vector<std::int32_t> slots;
    std::map<std::uint64_t, std::int32_t> shared;
  };
  struct Found {
    std::vector<std::int32_t> slots;  // per key
    std::vector<Key> miss_keys, overflow_keys, writeback_keys;
    std::vector<std::int32_t> miss_slots, writeback_slots;
    std::uint32_t hits = 0, overflows = 0;
  };

  HostCache(const backend::CacheSize& size, backend::EvictionPolicy policy)
      : size_(size), policy_(policy), ways_(static_cast<std::size_t>(size.num_slots())) {}

  std::int64_t set_of(std::uint64_t tag) const {
    return static_cast<std::int64_t>(
        (static_cast<unsigned __int128>(tag) * static_cast<std::uint64_t>(size_.num_sets)) >> 64);
  }
  Way& way(std::int64_t slot) { return ways_[static_cast<std::size_t>(slot)]; }
  const std::vector<Way>& ways() const { return ways_; }

  /// `tags` ascend; occurrences[i] is how often tags[i] occurs.
  Found resolve(const std::vector<std::uint64_t>& tags,
                const std::vector<std::uint32_t>& occurrences,
                const backend::ResolveArguments& arguments,
                const Overflow& overflow) {
    const bool train = arguments.mode == backend::ResolveMode::kTrain;
    Found found;
    found.slots.assign(tags.size(), -1);
    // All resident rows are pinned before any is evicted.
    for (std::size_t i = 0; i < tags.size(); ++i) {
      const auto slot = find(tags[i]);
      const auto shared = overflow.shared.find(tags[i]);
      if (!slot && shared == overflow.shared.end()) continue;
      found.slots[i] = slot ? static_cast<std::int32_t>(*slot) : shared->second;
      ++found.hits;
      if (!slot || !train) continue;
      way(*slot).last_needed = arguments.batch;
      way(*slot).frequency += occurrences[i];
    }
    for (std::size_t i = 0; i < tags.size(); ++i) {
      if (found.slots[i] >= 0) continue;
      const Key key = backend::key_of_tag(tags[i]);
      const auto slot = train ? victim(set_of(tags[i]), arguments.completed) : std::nullopt;
      if (slot) {
        found.slots[i] = static_cast<std::int32_t>(*slot);
        if (way(*slot).occupied && way(*slot).dirty) {
          found.writeback_keys.push_back(backend::key_of_tag(way(*slot).tag));
          found.writeback_slots.push_back(static_cast<std::int32_t>(*slot));
        }
        way(*slot) = {true, false, tags[i], arguments.batch, occurrences[i]};
      } else {
        if (found.overflows < overflow.slots.size()) {
          found.slots[i] = overflow.slots[found.overflows];
          found.overflow_keys.push_back(key);
        }
        ++found.overflows;
      }
      found.miss_keys.push_back(key);
      found.miss_slots.push_back(found.slots[i]);
    }
    return found;
  }

 private:
  std::optional<std::int64_t> find(std::uint64_t tag) const {
    const std::int64_t first = set_of(tag) * backend::CacheSize::kWays;
    for (std::int64_t slot = first; slot < first + backend::CacheSize::kWays; ++slot) {
      const Way& way = ways_[static_cast<std::size_t>(slot)];
      if (way.occupied && way.tag == tag) return slot;
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> victim(std::int64_t set, std::uint32_t completed) const {
    const std::int64_t first = set * backend::CacheSize::kWays;
    std::optional<std::int64_t> best;
    for (std::int64_t slot = first; slot < first + backend::CacheSize::kWays; ++slot) {
      const Way& way = ways_[static_cast<std::size_t>(slot)];
      if (!way.occupied) return slot;
      if (way.last_needed > completed) continue;
      if (!best || score(way) < score(ways_[static_cast<std::size_t>(*best)])) best = slot;
    }
    return best;
  }

  std::pair<std::uint32_t, std::uint32_t> score(const Way& way) const {
    const bool lfu = policy_ == backend::EvictionPolicy::kLfu;
    return {lfu ? way.frequency : 0, way.last_needed};
  }

  backend::CacheSize size_;
  backend::EvictionPolicy policy_;
  std::vector<Way> ways_;
};

}  // namespace satrap::testing
