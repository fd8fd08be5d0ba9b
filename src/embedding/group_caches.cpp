#include "src/embedding/group_caches.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "src/embedding/divide_cache.h"
#include "src/embedding/index.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kMaxKeptBytes = std::int64_t{1} << 30;

std::optional<backend::Stream> make_own(backend::Device& device, const backend::Stream* given) {
  if (given != nullptr) return std::nullopt;
  return std::optional<backend::Stream>(std::in_place, device);
}

}  // namespace

GroupCaches::GroupCaches(const std::vector<job::FeatureSpec>& features,
                         const std::vector<table::TableSpec>& tables,
                         std::uint64_t seed,
                         backend::Device& the_device,
                         ThreadPool& threads,
                         const Options& options)
    : groups(features, tables, seed),
      on_host(features, tables),
      on_device(features, tables, FeatureLayout::kDeviceColumns),
      device(the_device),
      pool(threads),
      planning(the_device),
      evictions(the_device),
      own_compute_(make_own(the_device, options.stream)),
      compute(own_compute_ ? *own_compute_ : *options.stream),
      options_(options),
      queued_(the_device),
      kept_(the_device, on_device, threads, kMaxKeptBytes) {}

GroupCaches::Parts GroupCaches::make_parts() const {
  Parts parts;
  for (const RowGroup& group : groups.groups()) {
    if (group.features.empty()) continue;
    parts.push_back(std::make_unique<GroupPart>(device, on_device, group, pool));
  }
  return parts;
}

void GroupCaches::fill(const Parts& parts, const data::Batch& batch, std::int64_t step) {
  device.use_on_this_thread();
  if (!kept_.take(step, parts)) fill(parts, batch);
  std::size_t num_ids = 0;
  for (const auto& part : parts) num_ids += index(part->batch.num_ids());
  SATRAP_CHECK(num_ids == batch.ids.size(), "step ", step, " has ", batch.ids.size(),
               " ids, and its plan ", num_ids);
  upload(parts, batch.num_examples, step);
}

void GroupCaches::fill(const Parts& parts, const data::Batch& batch) const {
  for (const auto& part : parts) part->batch.fill(batch, on_device.output_width);
}

void GroupCaches::fill(const Parts& parts,
                       std::span<const std::vector<Key>> keys,
                       std::int64_t num_examples,
                       std::int64_t step) {
  device.use_on_this_thread();
  for (std::size_t g = 0; g < parts.size(); ++g) parts[g]->batch.fill(keys[g]);
  upload(parts, num_examples, step);
}

void GroupCaches::upload(const Parts& parts, std::int64_t num_examples, std::int64_t step) {
  for (const auto& part : parts) part->batch.upload(planning);
  if (caches.empty()) make_caches(parts, num_examples, step);
}

void GroupCaches::make_caches(const Parts& parts, std::int64_t num_examples, std::int64_t step) {
  std::vector<GroupNeed> needs;
  for (const auto& part : parts) {
    needs.push_back({&part->group.layout, expected_keys(*part, num_examples)});
  }
  const std::vector<backend::CacheSize> sizes =
      divide_cache(needs, {.memory_bytes = options_.memory_bytes,
                           .window_bytes_per_slot = looks_ahead() ? kWindowBytesPerSlot : 0,
                           .max_in_flight = options_.max_in_flight});
  if (looks_ahead()) {
    look_ahead_ = std::min(batches_to_look_ahead(needs, sizes), options_.max_look_ahead);
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t g = 0; g < parts.size(); ++g) {
    std::optional<backend::WindowSize> window;
    if (look_ahead_ > 0) window = window_size(needs[g], sizes[g], look_ahead_);
    caches.push_back(std::make_unique<GroupCache>(device, parts[g]->group, sizes[g],
                                                  options_.policy, window, planning, evictions));
  }
  steps_before_ = step - 1;
  completed_ = step - 1;
}

/// Distinct keys of a full batch, by the part of the first one.
std::int64_t GroupCaches::expected_keys(const GroupPart& part, std::int64_t num_examples) const {
  constexpr std::int64_t kExamplesPerKey = 8;  // of features that the first batch has no id for
  const std::int64_t examples = std::max(options_.batch_examples, num_examples);
  if (part.batch.num_ids() == 0) {
    return std::ssize(part.group.features) * examples / kExamplesPerKey;
  }
  return part.batch.count_keys() * examples / num_examples;
}

void GroupCaches::look_at(const data::Batch& batch, std::int64_t step) {
  if (look_ahead() == 0) return;
  prepare_look();
  fill(looked_at_, batch);
  upload(looked_at_, batch.num_examples, step);
  touch(step);
  // The parts are filled again: the device must not read their memory then.
  if (!kept_.keep(step, looked_at_)) planning.wait_until_idle();
}

void GroupCaches::look_at(std::span<const std::vector<Key>> keys,
                          std::int64_t num_examples,
                          std::int64_t step) {
  if (look_ahead() == 0) return;
  prepare_look();
  planning.wait_until_idle();  // it may still read the batch before
  fill(looked_at_, keys, num_examples, step);
  touch(step);
}

void GroupCaches::prepare_look() {
  device.use_on_this_thread();
  if (looked_at_.empty()) looked_at_ = make_parts();
}

void GroupCaches::touch(std::int64_t step) {
  for (std::size_t g = 0; g < looked_at_.size(); ++g) {
    caches[g]->look_at(*looked_at_[g], numbers(step, steps_before_).batch);
  }
}

void GroupCaches::resolve(const Parts& parts, std::int64_t step, WriteBack* write_back) {
  for (std::size_t g = 0; g < parts.size(); ++g) {
    parts[g]->missing.clear();
    parts[g]->for_slots.clear();
    while (true) {
      const std::int64_t completed = this->completed();
      {
        const std::lock_guard lock(mutex_);
        if (caches[g]->resolve(*parts[g], numbers(step, completed), write_back)) break;
      }
      wait_for_room(step, completed, *caches[g]);
      parts[g]->made_room.wait_until_reached();  // the part's lists are used again
    }
  }
  is_worth_looking_ = is_worth_looking_ || options_.looks_ahead_at_once ||
                      std::ranges::any_of(caches, &GroupCache::is_crowded);
}

/// Blocks until more than the steps up to `completed` are completed; throws if that cannot help.
void GroupCaches::wait_for_room(std::int64_t step,
                                std::int64_t completed,
                                const GroupCache& cache) {
  if (completed >= options_.delay.oldest_version(step)) {
    const backend::CacheSize& size = cache.view().size;
    const std::int64_t others = step - 1 - completed;
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
  wait_for_progress(completed);
}

void GroupCaches::wait_for_progress(std::int64_t completed) {
  while (this->completed() <= completed) {
    queued_.wait_for_oldest();
    std::unique_lock lock(progress_mutex_);
    progress_.wait(lock,
                   [&] { return is_stopped_ || completed_ > completed || !queued_.is_empty(); });
    if (is_stopped_) throw Error(ErrorCode::kUnavailable, "the cache of rows was stopped");
  }
}

void GroupCaches::note_completed(std::int64_t step) {
  const std::lock_guard lock(progress_mutex_);
  if (step <= completed_) return;
  completed_.store(step, std::memory_order_release);
  progress_.notify_all();
}

void GroupCaches::note_queued(std::int64_t step) {
  const std::lock_guard lock(progress_mutex_);
  queued_.add(step, compute);
  progress_.notify_all();
}

std::int64_t GroupCaches::completed() {
  if (const auto step = queued_.newest_done()) note_completed(*step);
  return completed_;
}

void GroupCaches::wait_completed(std::int64_t step) {
  while (completed() < step) wait_for_progress(step - 1);
}

void GroupCaches::stop_waiting() {
  const std::lock_guard lock(progress_mutex_);
  is_stopped_ = true;
  progress_.notify_all();
}

GroupCache::Numbers GroupCaches::numbers(std::int64_t step, std::int64_t completed) const {
  const std::int64_t batches = std::max<std::int64_t>(0, completed - steps_before_);
  return {.batch = static_cast<std::uint32_t>(step - steps_before_),
          .completed = static_cast<std::uint32_t>(batches),
          .step = completed};
}

std::int64_t GroupCaches::bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& cache : caches) bytes += cache->bytes();
  return bytes;
}

}  // namespace satrap::embedding
