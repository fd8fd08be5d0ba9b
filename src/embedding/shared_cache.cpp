#include "satrap/embedding/shared_cache.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "src/embedding/divide_cache.h"
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
                        const Options& the_options)
    : groups(features, as_copied(tables), 0),
      on_host(features, as_copied(tables)),
      on_device(features, as_copied(tables), FeatureLayout::kDeviceColumns),
      device(the_device),
      pool(threads),
      options(the_options),
      planning(the_device),
      compute(the_device),
      updates(the_device) {}

SharedCache::Impl::Parts SharedCache::Impl::make_parts() const {
  Parts parts;
  for (const RowGroup& group : groups.groups()) {
    if (group.features.empty()) continue;
    parts.push_back(std::make_unique<GroupPart>(device, on_device, group, pool));
  }
  return parts;
}

void SharedCache::Impl::fill(const Parts& parts, const data::Batch& batch, std::int64_t step) {
  device.use_on_this_thread();
  for (const auto& part : parts) {
    part->batch.fill(batch, on_device.output_width);
    part->batch.upload(planning);
  }
  if (caches.empty()) make_caches(parts, step);
}

void SharedCache::Impl::make_caches(const Parts& parts, std::int64_t step) {
  std::vector<GroupNeed> needs;
  for (const auto& part : parts) needs.push_back({&part->group.layout, expected_keys(*part)});
  const std::vector<backend::CacheSize> sizes =
      divide_cache(needs, {.memory_bytes = options.memory_bytes,
                           .window_bytes_per_slot = looks_ahead() ? kWindowBytesPerSlot : 0,
                           .max_in_flight = options.max_in_flight});
  if (looks_ahead()) {
    look_ahead_ = std::min(batches_to_look_ahead(needs, sizes), options.max_look_ahead);
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t g = 0; g < parts.size(); ++g) {
    std::optional<backend::WindowSize> window;
    if (look_ahead_ > 0) window = window_size(needs[g], sizes[g], look_ahead_);
    caches.push_back(std::make_unique<GroupCache>(device, parts[g]->group, sizes[g], options.policy,
                                                  window, planning));
    versions_.emplace_back(index(sizes[g].num_slots() + sizes[g].overflow_rows));
  }
  steps_before_ = step - 1;
  pooled_ = step - 1;
}

/// Distinct keys of a full batch, by the part of the first one.
std::int64_t SharedCache::Impl::expected_keys(const GroupPart& part) const {
  constexpr std::int64_t kExamplesPerKey = 8;  // of features that the first batch has no id for
  const backend::Bags bags = part.batch.bags();
  const std::int64_t examples = std::max(options.batch_examples, bags.num_examples);
  if (bags.num_ids == 0) return bags.num_features * examples / kExamplesPerKey;
  return part.batch.count_keys() * examples / bags.num_examples;
}

void SharedCache::Impl::look_at(const data::Batch& batch, std::int64_t step) {
  if (!looks_ahead()) return;
  if (looked_at_.empty()) looked_at_ = make_parts();
  planning.wait_until_idle();  // it may still read the batch before
  fill(looked_at_, batch, step);
  for (std::size_t g = 0; g < looked_at_.size(); ++g) {
    caches[g]->look_at(*looked_at_[g], numbers(step, steps_before_).batch);
  }
}

void SharedCache::Impl::resolve(const Parts& parts, std::int64_t step) {
  for (std::size_t g = 0; g < parts.size(); ++g) {
    parts[g]->missing.clear();
    parts[g]->for_slots.clear();
    while (true) {
      const std::int64_t pooled = pooled_.load(std::memory_order_acquire);
      {
        const std::lock_guard lock(mutex_);
        if (caches[g]->resolve(*parts[g], numbers(step, pooled), nullptr)) break;
      }
      wait_for_progress(step, pooled, *caches[g]);
    }
    for (const std::int32_t slot : parts[g]->for_slots) version(g, slot) = SharedBatch::kNoCopy;
  }
}

/// Blocks until more batches than those of steps <= `pooled` have been pooled.
void SharedCache::Impl::wait_for_progress(std::int64_t step,
                                          std::int64_t pooled,
                                          const GroupCache& cache) {
  // The rows of all earlier steps have been asked for, so they will be pooled without this one's.
  if (pooled >= step - 1) {
    const backend::CacheSize& size = cache.view().size;
    throw Error(ErrorCode::kInvalidConfig,
                concat("embedding.cache.memory: the rows that step ", step,
                       " needs at the same time do not fit in the cache of ", size.num_slots(),
                       " rows of dim ", cache.group().layout.dim, " and ", size.overflow_rows,
                       " overflow rows, which suited the first batch; use a larger cache or a "
                       "smaller data.batch_size"));
  }
  std::unique_lock lock(progress_mutex_);
  progress_.wait(lock, [&] { return is_stopped_ || pooled_ > pooled; });
  if (is_stopped_) throw Error(ErrorCode::kUnavailable, "the cache of rows was stopped");
}

void SharedCache::Impl::note_pooled(std::int64_t step) {
  const std::lock_guard lock(progress_mutex_);
  if (step <= pooled_) return;
  pooled_.store(step, std::memory_order_release);
  progress_.notify_all();
}

void SharedCache::Impl::stop() {
  const std::lock_guard lock(progress_mutex_);
  is_stopped_ = true;
  progress_.notify_all();
}

GroupCache::Numbers SharedCache::Impl::numbers(std::int64_t step, std::int64_t pooled) const {
  return {.batch = static_cast<std::uint32_t>(step - steps_before_),
          .completed = static_cast<std::uint32_t>(pooled - steps_before_),
          .step = pooled};
}

void SharedCache::Impl::count_taken(std::int64_t hits, std::int64_t misses) {
  hits_ += hits;
  misses_ += misses;
}

CacheCounts SharedCache::Impl::counts() const {
  CacheCounts counts;
  counts.hits = hits_;
  counts.misses = misses_;
  const std::lock_guard lock(mutex_);
  for (const auto& cache : caches) counts.bytes += cache->bytes();
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
void SharedCache::stop() { impl_->stop(); }
CacheCounts SharedCache::counts() const { return impl_->counts(); }

}  // namespace satrap::embedding
