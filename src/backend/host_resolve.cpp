#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "src/backend/arguments.h"
#include "src/backend/eviction.h"
#include "src/backend/host_device.h"
#include "src/backend/host_sets.h"

namespace satrap::backend {
namespace {

/// Resolves one batch in a cache, one set after the other.
class Resolution {
 public:
  explicit Resolution(const Resolve& operation)
      : cache_(operation.cache),
        plan_(operation.plan),
        arguments_(operation.arguments),
        misses_(operation.misses) {}

  /// Resolves keys [begin, end), all of one set. Rows that are found are pinned before any
  /// eviction.
  void resolve_set(std::uint32_t begin, std::uint32_t end) {
    first_ = host_set_of(plan_.unique_tags[begin], cache_.size.num_sets) * CacheSize::kWays;
    for (std::uint32_t u = begin; u < end; ++u) {
      const std::uint64_t tag = plan_.unique_tags[u];
      const std::int64_t slot = host_find(cache_, tag);
      plan_.slots[u] = slot < 0 ? find_shared(tag) : static_cast<std::int32_t>(slot);
      if (plan_.slots[u] < 0) continue;
      ++misses_.counts->hits;
      if (slot >= 0) pin(slot, u);
    }
    for (std::uint32_t u = begin; u < end; ++u) {
      if (plan_.slots[u] < 0) miss(u);
    }
  }

 private:
  std::int32_t find_shared(std::uint64_t tag) const {
    const std::span shared(arguments_.shared, static_cast<std::size_t>(arguments_.num_shared));
    const auto found = std::ranges::lower_bound(shared, tag, {}, &OverflowRow::tag);
    if (found == shared.end() || found->tag != tag) return -1;
    found->is_needed = 1;
    return found->slot;
  }

  void pin(std::int64_t slot, std::uint32_t unique) {
    const std::uint32_t last = std::exchange(cache_.last_needed[slot], arguments_.batch);
    if (cache_.policy == EvictionPolicy::kLru) return;
    if (cache_.policy == EvictionPolicy::kLookahead) {
      cache_.next_use[slot] = unique < arguments_.num_next_uses ? arguments_.next_uses[unique] : 0;
    }
    const std::uint32_t occurrences = plan_.segments[unique + 1] - plan_.segments[unique];
    const std::uint32_t before = aged(cache_.policy, cache_.frequency[slot], last, arguments_);
    cache_.frequency[slot] = before + std::min(occurrences, 0xFFFFFFFFU - before);
  }

  /// The slot for an admitted row: an empty one, else the unpinned one that the policy puts first,
  /// else -1.
  std::int64_t victim() const {
    std::int64_t best = -1;
    for (std::int64_t slot = first_; slot < first_ + CacheSize::kWays; ++slot) {
      if (cache_.digests[slot] == 0) return slot;
      if (cache_.last_needed[slot] > arguments_.completed) continue;
      if (best < 0 || rank(slot) < rank(best)) best = slot;
    }
    return best;
  }
  std::pair<std::uint32_t, std::uint32_t> rank(std::int64_t slot) const {
    const std::uint32_t last = cache_.last_needed[slot];
    return {
        score_of(cache_.policy, cache_.frequency[slot], last, cache_.next_use[slot], arguments_),
        last};
  }

  void miss(std::uint32_t unique) {
    const std::uint64_t tag = plan_.unique_tags[unique];
    const std::int64_t slot = victim();
    if (slot >= 0) {
      admit(slot, tag, unique);
    } else {
      overflow(key_of_tag(tag), unique);
    }
    misses_.miss_keys[misses_.counts->misses] = key_of_tag(tag);
    misses_.miss_slots[misses_.counts->misses++] = plan_.slots[unique];
  }

  void admit(std::int64_t slot, std::uint64_t tag, std::uint32_t unique) {
    if (cache_.digests[slot] != 0 && cache_.dirty[slot] != kClean) {
      misses_.writeback_keys[misses_.counts->writebacks] = key_of_tag(cache_.tags[slot]);
      misses_.writeback_slots[misses_.counts->writebacks++] = static_cast<std::int32_t>(slot);
    }
    cache_.tags[slot] = tag;
    cache_.digests[slot] = host_digest_of(tag);
    cache_.dirty[slot] = kClean;
    cache_.frequency[slot] = 0;
    pin(slot, unique);
    plan_.slots[unique] = static_cast<std::int32_t>(slot);
  }

  void overflow(Key key, std::uint32_t unique) {
    const std::int64_t number = misses_.counts->overflows++;
    if (number >= arguments_.max_overflow) return;
    misses_.overflow_keys[number] = key;
    plan_.slots[unique] = arguments_.overflow_slots[number];
  }

  const CacheView& cache_;
  const PlanView& plan_;
  const ResolveArguments& arguments_;
  const MissView& misses_;
  std::int64_t first_ = 0;  // slot of the set
};

}  // namespace

void HostDevice::resolve(const Resolve& operation, StreamRef) {
  check_arguments(operation);
  const PlanView& plan = operation.plan;
  *operation.misses.counts = {};
  if (plan.num_ids == 0) return;
  Resolution resolution(operation);
  for (std::uint32_t r = 0; r < plan.counts->set_runs; ++r) {
    resolution.resolve_set(plan.set_runs[r], plan.set_runs[r + 1]);
  }
}

}  // namespace satrap::backend
