#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "satrap/backend/operations.h"

namespace satrap::testing {

/// A simple host version of the cache, one key after the other: resolve must give the same.
class HostCache {
 public:
  struct Way {
    bool occupied = false, dirty = false;
    std::uint64_t tag = 0;
    std::uint32_t last_needed = 0, frequency = 0, next_use = 0;
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

  /// As touch does: the row is needed in a batch, unless it is known to be needed before.
  void touch(std::uint64_t tag, std::uint32_t batch, std::uint32_t resolved) {
    const auto slot = find(tag);
    if (slot && way(*slot).next_use <= resolved) way(*slot).next_use = batch;
  }

  /// `tags` ascend; occurrences[i] is how often tags[i] occurs, next_uses[i] its next use.
  Found resolve(const std::vector<std::uint64_t>& tags,
                const std::vector<std::uint32_t>& occurrences,
                const backend::ResolveArguments& arguments,
                const Overflow& overflow,
                const std::vector<std::uint32_t>& next_uses) {
    Found found;
    found.slots.assign(tags.size(), -1);
    // All resident rows are pinned before any is evicted.
    for (std::size_t i = 0; i < tags.size(); ++i) {
      const auto slot = find(tags[i]);
      const auto shared = overflow.shared.find(tags[i]);
      if (!slot && shared == overflow.shared.end()) continue;
      found.slots[i] = slot ? static_cast<std::int32_t>(*slot) : shared->second;
      ++found.hits;
      if (!slot) continue;
      Way& way = ways_[static_cast<std::size_t>(*slot)];
      way.frequency = worth(way, arguments) + occurrences[i];
      way.last_needed = arguments.batch;
      way.next_use = i < next_uses.size() ? next_uses[i] : 0;
    }
    for (std::size_t i = 0; i < tags.size(); ++i) {
      if (found.slots[i] >= 0) continue;
      const Key key = backend::key_of_tag(tags[i]);
      const auto slot = victim(set_of(tags[i]), arguments);
      if (slot) {
        found.slots[i] = static_cast<std::int32_t>(*slot);
        if (way(*slot).occupied && way(*slot).dirty) {
          found.writeback_keys.push_back(backend::key_of_tag(way(*slot).tag));
          found.writeback_slots.push_back(static_cast<std::int32_t>(*slot));
        }
        way(*slot) = {true,           false,
                      tags[i],        arguments.batch,
                      occurrences[i], i < next_uses.size() ? next_uses[i] : 0};
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

  std::optional<std::int64_t> victim(std::int64_t set,
                                     const backend::ResolveArguments& arguments) const {
    const std::int64_t first = set * backend::CacheSize::kWays;
    std::optional<std::int64_t> best;
    for (std::int64_t slot = first; slot < first + backend::CacheSize::kWays; ++slot) {
      const Way& way = ways_[static_cast<std::size_t>(slot)];
      if (!way.occupied) return slot;
      if (way.last_needed > arguments.completed) continue;
      if (!best || rank(way, arguments) < rank(ways_[static_cast<std::size_t>(*best)], arguments)) {
        best = slot;
      }
    }
    return best;
  }

  /// The frequency, halved at every multiple of the period since the row was needed.
  std::uint32_t worth(const Way& way, const backend::ResolveArguments& arguments) const {
    std::uint32_t worth = way.frequency;
    if (policy_ != backend::EvictionPolicy::kLookahead) return worth;
    for (std::uint32_t b = way.last_needed + 1; b <= arguments.batch; ++b) {
      if (b % (1U << arguments.halving_log2) == 0) worth /= 2;
    }
    return worth;
  }

  /// Known next use, the closest last; frequency; last use.
  std::tuple<bool, std::int64_t, std::uint32_t, std::uint32_t> rank(
      const Way& way,
      const backend::ResolveArguments& arguments) const {
    const bool known =
        policy_ == backend::EvictionPolicy::kLookahead && way.next_use > arguments.batch;
    const bool lru = policy_ == backend::EvictionPolicy::kLru;
    return {known, known ? -std::int64_t{way.next_use} : 0,
            known || lru ? 0 : worth(way, arguments), way.last_needed};
  }

  backend::CacheSize size_;
  backend::EvictionPolicy policy_;
  std::vector<Way> ways_;
};

}  // namespace satrap::testing
