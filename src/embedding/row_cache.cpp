#include "src/embedding/row_cache.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "satrap/core/error.h"
#include "src/embedding/divide_cache.h"

namespace satrap::embedding {

void RowCache::make_caches(const std::vector<std::unique_ptr<GroupPart>>& parts,
                           std::int64_t num_examples,
                           std::int64_t step) {
  std::vector<GroupNeed> needs;
  for (const auto& part : parts)
    needs.push_back({&part->group.layout, expected_keys(*part, num_examples)});
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
  }
  steps_before_ = step - 1;
  applied_ = step - 1;
}

/// Distinct keys of a full batch, by the part of the first one.
std::int64_t RowCache::expected_keys(const GroupPart& part, std::int64_t num_examples) const {
  constexpr std::int64_t kExamplesPerKey = 8;  // of features that the first batch has no id for
  const std::int64_t examples = std::max(options.batch_examples, num_examples);
  if (part.batch.num_ids() == 0) {
    return std::ssize(part.group.features) * examples / kExamplesPerKey;
  }
  return part.batch.count_keys() * examples / num_examples;
}

void RowCache::count_fetched(std::span<const Key> keys) {
  std::int64_t bytes = 0;
  for (const Key key : keys) {
    bytes += groups.groups()[groups.group_of(table_of(key))].layout.row_bytes;
  }
  bytes_fetched_ += bytes;
}

void RowCache::sample(const std::vector<std::unique_ptr<GroupPart>>& parts, std::int64_t step) {
  const std::lock_guard lock(sample_mutex_);
  for (const auto& part : parts) {
    curve_.add(numbers(step, steps_before_).batch, part->batch.keys(),
               part->group.layout.device_stride + backend::CacheSize::kBookkeepingBytes);
  }
}

std::vector<std::unique_ptr<GroupPart>> RowCache::make_parts() const {
  std::vector<std::unique_ptr<GroupPart>> parts;
  for (const RowGroup& group : groups.groups()) {
    if (group.features.empty()) continue;
    parts.push_back(std::make_unique<GroupPart>(device, on_device, group, pool));
  }
  return parts;
}

void RowCache::fill(const std::vector<std::unique_ptr<GroupPart>>& parts,
                    const data::Batch& batch,
                    std::int64_t step) {
  device.use_on_this_thread();
  for (const auto& part : parts) part->batch.fill(batch, on_device.output_width);
  upload(parts, batch.num_examples, step);
}

void RowCache::fill(const std::vector<std::unique_ptr<GroupPart>>& parts,
                    std::span<const std::vector<Key>> keys,
                    std::int64_t num_examples,
                    std::int64_t step) {
  device.use_on_this_thread();
  for (std::size_t g = 0; g < parts.size(); ++g) parts[g]->batch.fill(keys[g]);
  upload(parts, num_examples, step);
}

void RowCache::upload(const std::vector<std::unique_ptr<GroupPart>>& parts,
                      std::int64_t num_examples,
                      std::int64_t step) {
  for (const auto& part : parts) part->batch.upload(planning);
  if (caches.empty()) make_caches(parts, num_examples, step);
}

void RowCache::look_at(const data::Batch& batch, std::int64_t step) {
  if (!looks_ahead()) return;
  if (looked_at_.empty()) looked_at_ = make_parts();
  planning.wait_until_idle();  // it may still read the batch before
  fill(looked_at_, batch, step);
  for (std::size_t g = 0; g < looked_at_.size(); ++g) {
    caches[g]->look_at(*looked_at_[g], numbers(step, steps_before_).batch);
  }
}

void RowCache::resolve(std::vector<std::unique_ptr<GroupPart>>& parts, std::int64_t step) {
  write_back.wait_for_room();
  for (std::size_t g = 0; g < parts.size(); ++g) {
    parts[g]->missing.clear();
    parts[g]->for_slots.clear();
    while (true) {
      const std::int64_t applied = applied_.load(std::memory_order_acquire);
      {
        const std::lock_guard lock(mutex_);
        if (caches[g]->resolve(*parts[g], numbers(step, applied), &write_back)) break;
      }
      wait_for_progress(step, applied, *caches[g]);
    }
  }
}

/// Blocks until more than the updates of steps <= `applied` are done.
void RowCache::wait_for_progress(std::int64_t step, std::int64_t applied, const GroupCache& cache) {
  // All lookups before this step will be made, and then all updates that need not wait for its own.
  if (applied >= options.update_delay.oldest_version(step)) {
    const backend::CacheSize& size = cache.view().size;
    throw Error(
        ErrorCode::kInvalidConfig,
        concat("embedding.cache.memory: the rows that step ", step, " and the ", step - 1 - applied,
               " steps before it need at the same time do not fit in the cache of ",
               size.num_slots(), " rows of dim ", cache.group().layout.dim, " and ",
               size.overflow_rows,
               " overflow rows, which suited the first batch; use a larger "
               "cache, a smaller data.batch_size or a smaller train.staleness"));
  }
  std::unique_lock lock(progress_mutex_);
  progress_.wait(lock, [&] { return is_stopped_ || applied_ > applied; });
  if (is_stopped_) throw Error(ErrorCode::kUnavailable, "the cache of rows was stopped");
}

void RowCache::note_applied(std::int64_t step) {
  const std::lock_guard lock(progress_mutex_);
  applied_.store(step, std::memory_order_release);
  progress_.notify_all();
}

void RowCache::update(const std::vector<std::unique_ptr<GroupPart>>& parts,
                      std::span<const float* const> gradients,
                      std::int64_t step) {
  device.use_on_this_thread();
  table_steps_.assign(num_tables_, TableStep{RowStep({}, 1.0, 1), 0, 0});
  groups.fill_steps(step, table_steps_);
  const TableStep* const steps = steps_.upload(table_steps_, compute);
  for (std::size_t g = 0; g < parts.size(); ++g) {
    device.backward_update(caches[g]->view(), parts[g]->view(), FloatType::kFp32, gradients[g],
                           caches[g]->group().optimizer, steps, compute);
  }
  compute.wait_until_idle();
  has_changed_ = true;
  note_applied(step);
}

void RowCache::save_changed() {
  if (!has_changed_.exchange(false)) return;
  device.use_on_this_thread();
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t applied = applied_;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& cache : caches) cache->save(numbers(applied, applied), write_back);
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const std::lock_guard lock(sample_mutex_);
  save_seconds_ += time.count();
}

void RowCache::flush() {
  save_changed();
  write_back.wait_until_empty();
}

GroupCache::Numbers RowCache::numbers(std::int64_t step, std::int64_t applied) const {
  return {
      .batch = static_cast<std::uint32_t>(step - steps_before_),
      .completed = static_cast<std::uint32_t>(std::max<std::int64_t>(0, applied - steps_before_)),
      .step = applied};
}

void RowCache::stop() {
  {
    const std::lock_guard lock(progress_mutex_);
    is_stopped_ = true;
    progress_.notify_all();
  }
  write_back.stop();
  fetcher.stop();
  uncached.stop();
}

CacheCounts RowCache::counts() const {
  CacheCounts counts;
  counts.rows_written = write_back.rows_put();
  counts.bytes_written = write_back.bytes_put();
  counts.bytes_fetched = bytes_fetched_;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& cache : caches) {
      counts.hits += cache->hits();
      counts.misses += cache->misses();
      counts.bytes += cache->bytes();
    }
  }
  const std::lock_guard lock(sample_mutex_);
  counts.save_seconds = save_seconds_;
  counts.miss_curve = curve_.points();
  counts.halving_bytes = curve_.halving_bytes(options.memory_bytes);
  return counts;
}

}  // namespace satrap::embedding
