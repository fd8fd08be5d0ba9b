#include "src/embedding/row_cache.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "satrap/core/error.h"
#include "src/embedding/divide_cache.h"
#include "src/embedding/index.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {
namespace {

std::optional<backend::Stream> make_own(backend::Device& device, const backend::Stream* given) {
  if (given != nullptr) return std::nullopt;
  return std::optional<backend::Stream>(std::in_place, device);
}

}  // namespace

RowCache::RowCache(const std::vector<job::FeatureSpec>& features,
                   const std::vector<table::TableSpec>& tables,
                   std::uint64_t seed,
                   table::RowStore& store,
                   RowAccess& uncached_rows,
                   backend::Device& the_device,
                   ThreadPool& threads,
                   const CachedRows::Options& given)
    : options(given),
      groups(features, tables, seed),
      num_tables(tables.size()),
      on_host(features, tables),
      on_device(features, tables, FeatureLayout::kDeviceColumns),
      device(the_device),
      pool(threads),
      uncached(uncached_rows),
      planning(the_device),
      evictions(the_device),
      copies(the_device),
      own_compute(make_own(the_device, given.stream)),
      compute(own_compute ? *own_compute : *given.stream),
      device_rows{the_device, compute, on_device, threads, given.times},
      completed(the_device),
      columns(on_host, on_device, the_device, threads),
      write_back(store, kMaxWaitingBytes),
      fetcher(store, given.num_fetches),
      kept_(the_device, on_device, threads, kMaxKeptBytes) {
  for (const TableGroup& group : groups.groups()) {
    if (group.features.empty()) continue;
    rooms_by_key.emplace_back(the_device, group.layout);
  }
}

// ------------------------------------------------------------------------------- planner's thread

RowCache::Parts RowCache::make_parts() const {
  Parts parts;
  for (const TableGroup& group : groups.groups()) {
    if (group.features.empty()) continue;
    parts.push_back(std::make_unique<GroupPart>(device, on_device, group, pool));
  }
  return parts;
}

void RowCache::fill(const Parts& parts, const data::Batch& batch, std::int64_t step) {
  device.use_on_this_thread();
  if (!kept_.take(step, parts)) fill(parts, batch);
  std::size_t num_ids = 0;
  for (const auto& part : parts) num_ids += index(part->batch.num_ids());
  SATRAP_CHECK(num_ids == batch.ids.size(), "step ", step, " has ", batch.ids.size(),
               " ids, and its plan ", num_ids);
  upload(parts, batch.num_examples, step);
}

void RowCache::fill(const Parts& parts, const data::Batch& batch) const {
  for (const auto& part : parts) part->batch.fill(batch, on_device.output_width);
}

void RowCache::fill(const Parts& parts,
                    std::span<const std::vector<Key>> keys,
                    std::int64_t num_examples,
                    std::int64_t step) {
  device.use_on_this_thread();
  for (std::size_t g = 0; g < parts.size(); ++g) parts[g]->batch.fill(keys[g]);
  upload(parts, num_examples, step);
}

void RowCache::upload(const Parts& parts, std::int64_t num_examples, std::int64_t step) {
  for (const auto& part : parts) part->batch.upload(planning);
  if (caches.empty()) make_caches(parts, num_examples, step);
}

void RowCache::make_caches(const Parts& parts, std::int64_t num_examples, std::int64_t step) {
  std::vector<GroupNeed> needs;
  for (const auto& part : parts) {
    needs.push_back({&part->group.layout, expected_keys(*part, num_examples)});
  }
  const std::vector<backend::CacheSize> sizes =
      divide_cache(needs, {.memory_bytes = options.memory_bytes,
                           .window_bytes_per_slot = looks_ahead() ? kWindowBytesPerSlot : 0,
                           .max_in_flight = options.max_in_flight});
  if (looks_ahead()) {
    look_ahead_ = std::min(batches_to_look_ahead(needs, sizes), options.max_look_ahead);
  }
  const MutexLock lock(mutex_);
  for (std::size_t g = 0; g < parts.size(); ++g) {
    std::optional<backend::WindowSize> window;
    if (look_ahead_ > 0) window = window_size(needs[g], sizes[g], look_ahead_);
    caches.push_back(std::make_unique<GroupCache>(device, parts[g]->group, sizes[g], options.policy,
                                                  window, planning, evictions));
  }
  steps_before_ = step - 1;
  completed.start_after(steps_before_);
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

void RowCache::look_at(const data::Batch& batch, std::int64_t step) {
  if (look_ahead() == 0) return;
  prepare_look();
  fill(looked_at_, batch);
  upload(looked_at_, batch.num_examples, step);
  touch(step);
  // The parts are filled again: the device must not read their memory then.
  if (!kept_.keep(step, looked_at_)) planning.wait_until_idle();
}

void RowCache::look_at(std::span<const std::vector<Key>> keys,
                       std::int64_t num_examples,
                       std::int64_t step) {
  if (look_ahead() == 0) return;
  prepare_look();
  planning.wait_until_idle();  // it may still read the batch before
  fill(looked_at_, keys, num_examples, step);
  touch(step);
}

void RowCache::prepare_look() {
  device.use_on_this_thread();
  if (looked_at_.empty()) looked_at_ = make_parts();
}

void RowCache::touch(std::int64_t step) {
  for (std::size_t g = 0; g < looked_at_.size(); ++g) {
    caches[g]->look_at(*looked_at_[g], numbers(step, steps_before_).batch);
  }
}

void RowCache::resolve(const Parts& parts, std::int64_t step) {
  write_back.wait_for_room();
  for (std::size_t g = 0; g < parts.size(); ++g) {
    parts[g]->missing.clear();
    parts[g]->for_slots.clear();
    while (true) {
      const std::int64_t newest = completed.newest();
      {
        const MutexLock lock(mutex_);
        if (caches[g]->resolve(*parts[g], numbers(step, newest), write_back)) break;
      }
      wait_for_room(step, newest, *caches[g]);
      parts[g]->made_room.wait_until_reached();  // the part's lists are used again
    }
  }
  is_worth_looking_ = is_worth_looking_ || options.looks_ahead_at_once ||
                      std::ranges::any_of(caches, &GroupCache::is_crowded);
}

/// Blocks until more than the steps up to `newest` are completed; throws if that cannot help.
void RowCache::wait_for_room(std::int64_t step, std::int64_t newest, const GroupCache& cache) {
  // Without the rows of this step, those up to its oldest_version will be completed.
  if (newest >= options.update_delay.oldest_version(step)) {
    const backend::CacheSize& size = cache.view().size;
    const std::int64_t others = step - 1 - newest;
    throw Error(
        ErrorCode::kInvalidConfig,
        concat("embedding.cache.memory: the rows that step ", step,
               others > 0 ? concat(" and the ", others, " steps before it need") : " needs",
               " at the same time do not fit in the cache of ", size.num_slots(), " rows of dim ",
               cache.group().layout.dim, " and ", size.overflow_rows,
               " overflow rows, which suited the first batch; use a larger cache, a smaller "
               "data.batch_size",
               others > 0 ? " or a smaller train.staleness" : ""));
  }
  completed.wait_beyond(newest);
}

GroupCache::Numbers RowCache::numbers(std::int64_t step, std::int64_t newest) const {
  const std::int64_t batches = std::max<std::int64_t>(0, newest - steps_before_);
  return {.batch = static_cast<std::uint32_t>(step - steps_before_),
          .completed = static_cast<std::uint32_t>(batches),
          .step = newest};
}

void RowCache::count_fetched(std::span<const Key> keys) {
  std::int64_t bytes = 0;
  for (const Key key : keys) {
    bytes += groups.groups()[groups.group_of(table_of(key))].layout.row_bytes;
  }
  bytes_fetched_ += bytes;
}

void RowCache::sample(const Parts& parts, std::int64_t step) {
  const MutexLock lock(sample_mutex_);
  for (const auto& part : parts) {
    curve_.add(numbers(step, steps_before_).batch, part->batch.keys(),
               part->group.layout.device_stride + backend::CacheSize::kBookkeepingBytes);
  }
}

// ------------------------------------------------------------------------- owner of the rows,
// saves

void RowCache::pool_to(const data::Batch& batch,
                       const FloatMatrix& pooled,
                       const FloatMatrix& mask,
                       const std::function<void(float*)>& queue) {
  const std::int64_t n = batch.num_examples;
  write_mask(on_host, batch, host_values(mask, n, on_host.mask_width, "mask"), mask.stride);
  device.use_on_this_thread();
  const bool stays = pooled.place == Place::kDevice;
  if (stays) check_on_device(pooled, n);
  float* const out = stays ? static_cast<float*>(pooled.data)
                           : host_values(pooled, n, on_host.output_width, "pooled output");
  {
    const backend::StreamTimes::Span span(options.times, backend::StreamTimes::kLookup);
    queue(stays ? out : columns.to_write(out, pooled.stride, n));
  }
  if (!stays) columns.finish(out, pooled.stride, n, compute);
}

void RowCache::check_on_device(const ConstFloatMatrix& matrix, std::int64_t num_examples) const {
  const std::int64_t width = on_device.output_width;
  SATRAP_CHECK(options.stream != nullptr && matrix.rows == num_examples && matrix.cols == width &&
                   matrix.stride == width,
               "pooled rows of ", num_examples, " examples in a device: ", matrix.rows, " rows of ",
               matrix.cols, " columns, wanted are ", width);
}

void RowCache::save_changed() {
  if (!has_changed_.exchange(false)) return;
  device.use_on_this_thread();
  const auto start = std::chrono::steady_clock::now();
  compute.wait_until_idle();
  const std::int64_t applied = completed.newest();
  {
    const MutexLock lock(mutex_);
    for (const auto& cache : caches) cache->save(numbers(applied, applied), write_back);
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const MutexLock lock(sample_mutex_);
  save_seconds_ += time.count();
}

void RowCache::flush() {
  save_changed();
  write_back.wait_until_empty();
}

void RowCache::stop() {
  completed.stop();
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
    const MutexLock lock(mutex_);
    for (const auto& cache : caches) {
      counts.hits += cache->hits();
      counts.misses += cache->misses();
      counts.bytes += cache->bytes();
    }
  }
  const MutexLock lock(sample_mutex_);
  counts.save_seconds = save_seconds_;
  counts.miss_curve = curve_.points();
  counts.halving_bytes = curve_.halving_bytes(options.memory_bytes);
  return counts;
}

}  // namespace satrap::embedding
