#include "satrap/embedding/shared_cache.h"

#include <utility>

#include "src/embedding/shared_batch.h"
#include "src/embedding/shared_cache_impl.h"

namespace satrap::embedding {
namespace {

/// Copies have the weights as they are sent, and nothing else.
std::vector<table::TableSpec> as_copied(std::vector<table::TableSpec> tables) {
  for (table::TableSpec& table : tables) {
    table.weights = FloatType::kFp32;
    table.optimizer.type = RowOptimizerType::kSgd;
  }
  return tables;
}

}  // namespace

SharedCache::Impl::Impl(const std::vector<job::FeatureSpec>& features,
                        const std::vector<table::TableSpec>& tables,
                        backend::Device& the_device,
                        ThreadPool& threads,
                        const SharedCache::Options& options)
    : GroupCaches(features,
                  as_copied(tables),
                  0,
                  the_device,
                  threads,
                  {.memory_bytes = options.memory_bytes,
                   .policy = options.policy,
                   .batch_examples = options.batch_examples,
                   .max_in_flight = options.max_in_flight,
                   .max_look_ahead = options.max_look_ahead,
                   .looks_ahead_at_once = options.looks_ahead_at_once,
                   .delay = 0}),  // all earlier steps have asked for their rows
      staleness(options.staleness),
      updates(the_device),
      pooled_columns(on_host, on_device, the_device, threads),
      gradient_columns(on_host, on_device, the_device, threads) {}

void SharedCache::Impl::resolve(const Parts& parts, std::int64_t step) {
  if (versions_.empty()) {
    for (const auto& cache : caches) {
      const backend::CacheSize& size = cache->view().size;
      versions_.emplace_back(index(size.num_slots() + size.overflow_rows));
    }
  }
  GroupCaches::resolve(parts, step, nullptr);
  for (std::size_t g = 0; g < parts.size(); ++g) {
    for (const std::int32_t slot : parts[g]->for_slots) version(g, slot) = SharedBatch::kNoCopy;
  }
}

void SharedCache::Impl::count_taken(std::int64_t hits, std::int64_t misses) {
  hits_ += hits;
  misses_ += misses;
}

CacheCounts SharedCache::Impl::counts() const {
  CacheCounts counts;
  counts.hits = hits_;
  counts.misses = misses_;
  counts.bytes = bytes();
  return counts;
}

// ------------------------------------------------------------------------------------ SharedCache

SharedCache::SharedCache(const std::vector<job::FeatureSpec>& features,
                         const std::vector<table::TableSpec>& tables,
                         backend::Device& device,
                         ThreadPool& pool,
                         const Options& options)
    : impl_(std::make_unique<Impl>(features, tables, device, pool, options)) {}
SharedCache::~SharedCache() = default;

const FeatureLayout& SharedCache::layout() const { return impl_->on_host; }
std::unique_ptr<SharedBatch> SharedCache::make_batch() {
  return std::make_unique<CopiedBatch>(*impl_);
}
std::int64_t SharedCache::look_ahead() const { return impl_->look_ahead(); }
void SharedCache::look_at(const data::Batch& batch, std::int64_t step) {
  impl_->look_at(batch, step);
}
void SharedCache::stop() { impl_->stop_waiting(); }
CacheCounts SharedCache::counts() const { return impl_->counts(); }

}  // namespace satrap::embedding
