#include "satrap/embedding/cached_rows.h"

#include <utility>

#include "src/embedding/row_cache.h"

namespace satrap::embedding {

CachedRows::CachedRows(const std::vector<job::FeatureSpec>& features,
                       const std::vector<table::TableSpec>& tables,
                       std::uint64_t seed,
                       table::RowStore& store,
                       RowAccess& uncached,
                       backend::Device& device,
                       ThreadPool& pool,
                       const Options& options)
    : cache_(std::make_unique<
             RowCache>(features, tables, seed, store, uncached, device, pool, options)) {}

CachedRows::~CachedRows() = default;

const FeatureLayout& CachedRows::layout() const { return cache_->on_host; }
const DeviceRows& CachedRows::device_rows() const { return cache_->device_rows; }
const DeviceRows* CachedRows::on_device() const {
  return cache_->options.stream == nullptr ? nullptr : &cache_->device_rows;
}
ThreadPool& CachedRows::pool() const { return cache_->pool; }
RowAccess& CachedRows::reader() { return cache_->uncached; }
std::int64_t CachedRows::look_ahead() const { return cache_->look_ahead(); }
void CachedRows::look_at(const data::Batch& batch, std::int64_t step) {
  cache_->look_at(batch, step);
}
void CachedRows::look_at(std::span<const std::vector<Key>> keys,
                         std::int64_t num_examples,
                         std::int64_t step) {
  cache_->look_at(keys, num_examples, step);
}
bool CachedRows::looks_ahead() const { return cache_->looks_ahead(); }
std::vector<const TableGroup*> CachedRows::groups() const {
  std::vector<const TableGroup*> groups;
  for (const TableGroup& group : cache_->groups.groups()) {
    if (!group.features.empty()) groups.push_back(&group);
  }
  return groups;
}
void CachedRows::stop() { cache_->stop(); }

void CachedRows::save(std::function<void()> action) {
  cache_->save_changed();
  cache_->write_back.add_action(std::move(action));
}

void CachedRows::flush() { cache_->flush(); }

void CachedRows::throw_if_failed() const { cache_->write_back.throw_if_failed(); }

CacheCounts CachedRows::counts() const { return cache_->counts(); }

}  // namespace satrap::embedding
