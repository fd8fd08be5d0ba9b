#include "src/pipeline/cache_options.h"

#include <algorithm>

#include "satrap/core/log.h"
#include "satrap/table/staleness_bound.h"

namespace satrap::pipeline {
namespace {

constexpr std::int64_t kMaxExamplesAhead = 1 << 20;  // read before it is their turn

/// Several ranks plan a batch together to look at it: that costs them more than it saves, but where
/// the store is slow (bench/journal/caches.md).
backend::EvictionPolicy policy_of(job::Eviction eviction, std::int64_t num_ranks) {
  using enum backend::EvictionPolicy;
  switch (eviction) {
    case job::Eviction::kAuto:
      return num_ranks == 1 ? kLookahead : kLfu;
    case job::Eviction::kLookahead:
      return kLookahead;
    case job::Eviction::kLfu:
      return kLfu;
    case job::Eviction::kLru:
      return kLru;
  }
  return kLookahead;  // not reached
}

/// The bound of the order in which lookups and updates run, if it is fixed: with several ranks it
/// always is. Where it is not asked for, it must not cost more staleness than it has to.
table::StalenessBound order_bound(const job::TrainConfig& train, std::int64_t num_ranks) {
  const table::StalenessBound bound = train.staleness_bound();
  if (train.deterministic) return bound;
  if (num_ranks == 1) return 0;
  return {std::min<std::int64_t>(1, bound.max()), bound.factor()};
}

std::int64_t max_look_ahead(const job::JobConfig& config) {
  return std::max<std::int64_t>(1, kMaxExamplesAhead / config.data.batch_size);
}

}  // namespace

embedding::CachedRows::Options cache_options(const job::JobConfig& config,
                                             const Cluster& cluster,
                                             std::int64_t memory_bytes,
                                             const backend::Stream* stream,
                                             backend::StreamTimes* times) {
  constexpr std::int64_t kLag = 2;  // steps that a device is behind the host
  return {.memory_bytes = memory_bytes,
          .policy = policy_of(config.embedding.cache.eviction, cluster.size()),
          .batch_examples = config.data.batch_size,  // of all ranks, whose keys it may own
          .max_in_flight = config.train.max_in_flight() + (stream == nullptr ? 0 : kLag),
          .update_delay = order_bound(config.train, cluster.size()),
          .max_look_ahead = max_look_ahead(config),
          .looks_ahead_at_once = cluster.size() > 1,
          .num_fetches = config.embedding.store == job::StoreKind::kPs
                             ? std::min<std::int64_t>(16, config.train.prefetch_batches)
                             : 1,
          .reads_in_store = config.embedding.cache.host_rows == job::HostRows::kRegistered,
          .stream = stream,
          .times = stream == nullptr ? nullptr : times};
}

void note_order(const job::TrainConfig& train, const Cluster& cluster) {
  if (cluster.size() == 1 || !cluster.is_chief()) return;
  const std::int64_t bound = order_bound(train, cluster.size()).max();
  if (bound == train.max_staleness()) return;
  log_info("train.staleness: {} counts as {}: ranks that share a cache work in a fixed order",
           train.max_staleness(), bound);
}

}  // namespace satrap::pipeline
