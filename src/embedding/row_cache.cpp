#include "src/embedding/row_cache.h"

#include <chrono>

#include "satrap/core/error.h"

namespace satrap::embedding {

RowCache::RowCache(const std::vector<job::FeatureSpec>& features,
                   const std::vector<table::TableSpec>& tables,
                   std::uint64_t seed,
                   table::RowStore& store,
                   RowAccess& uncached_rows,
                   backend::Device& the_device,
                   ThreadPool& threads,
                   const CachedRows::Options& options)
    : GroupCaches(features,
                  tables,
                  seed,
                  the_device,
                  threads,
                  {.memory_bytes = options.memory_bytes,
                   .policy = options.policy,
                   .batch_examples = options.batch_examples,
                   .max_in_flight = options.max_in_flight,
                   .max_look_ahead = options.max_look_ahead,
                   .looks_ahead_at_once = options.looks_ahead_at_once,
                   .delay = options.update_delay,
                   .stream = options.stream}),
      uncached(uncached_rows),
      reads_in_store(options.reads_in_store),
      times(options.times),
      copies(the_device),
      columns(on_host, on_device, the_device, threads),
      memory_bytes_(options.memory_bytes),
      num_tables_(tables.size()),
      write_back(store, kMaxWaitingBytes),
      fetcher(store, options.num_fetches) {
  if (options.stream != nullptr) {
    device_rows.emplace(the_device, compute, on_device, threads, times);
  }
  for (const RowGroup& group : groups.groups()) {
    if (group.features.empty()) continue;
    vectors.emplace_back(the_device);
    rooms_by_key.emplace_back(the_device, group.layout);
  }
}

void RowCache::resolve(const Parts& parts, std::int64_t step) {
  write_back.wait_for_room();
  GroupCaches::resolve(parts, step, &write_back);
}

void RowCache::count_fetched(std::span<const Key> keys) {
  std::int64_t bytes = 0;
  for (const Key key : keys) {
    bytes += groups.groups()[groups.group_of(table_of(key))].layout.row_bytes;
  }
  bytes_fetched_ += bytes;
}

void RowCache::sample(const Parts& parts, std::int64_t step) {
  const std::lock_guard lock(sample_mutex_);
  for (const auto& part : parts) {
    curve_.add(numbers(step, steps_before()).batch, part->batch.keys(),
               part->group.layout.device_stride + backend::CacheSize::kBookkeepingBytes);
  }
}

void RowCache::update(const Parts& parts,
                      std::span<const float* const> gradients,
                      std::int64_t step,
                      QueuedArray<TableStep>& steps,
                      const float* flag) {
  device.use_on_this_thread();
  const backend::StreamTimes::Span span(times, backend::StreamTimes::kUpdate);
  table_steps_.assign(num_tables_, TableStep{RowStep({}, 1.0, 1), 0, 0});
  groups.fill_steps(step, table_steps_);
  const TableStep* const uploaded = steps.upload(table_steps_, compute);
  for (std::size_t g = 0; g < parts.size(); ++g) {
    const backend::PlanView plan = parts[g]->view();
    if (flag != nullptr) device.cancel_update(flag, plan, compute);
    device.backward_update(caches[g]->view(), plan, FloatType::kFp32, gradients[g],
                           caches[g]->group().optimizer, uploaded, compute);
  }
  has_changed_ = true;
  note_queued(step);
}

void RowCache::check_on_device(const ConstFloatMatrix& matrix, std::int64_t num_examples) const {
  const std::int64_t width = on_device.output_width;
  SATRAP_CHECK(
      device_rows && matrix.rows == num_examples && matrix.cols == width && matrix.stride == width,
      "pooled rows of ", num_examples, " examples in a device: ", matrix.rows, " rows of ",
      matrix.cols, " columns, wanted are ", width);
}

void RowCache::save_changed() {
  if (!has_changed_.exchange(false)) return;
  device.use_on_this_thread();
  const auto start = std::chrono::steady_clock::now();
  compute.wait_until_idle();
  const std::int64_t applied = completed();
  {
    const std::lock_guard lock(mutex());
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

void RowCache::stop() {
  stop_waiting();
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
    const std::lock_guard lock(mutex());
    for (const auto& cache : caches) {
      counts.hits += cache->hits();
      counts.misses += cache->misses();
      counts.bytes += cache->bytes();
    }
  }
  const std::lock_guard lock(sample_mutex_);
  counts.save_seconds = save_seconds_;
  counts.miss_curve = curve_.points();
  counts.halving_bytes = curve_.halving_bytes(memory_bytes_);
  return counts;
}

}  // namespace satrap::embedding
