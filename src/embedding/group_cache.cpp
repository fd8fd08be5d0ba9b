#include "src/embedding/group_cache.h"

#include <algorithm>
#include <bit>
#include <span>
#include <type_traits>
#include <utility>

#include "satrap/backend/operations.h"
#include "satrap/core/error.h"
#include "src/embedding/index.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kSetsPerList = 2048;  // whose changed rows are saved at a time

std::int64_t sets_per_list(const backend::CacheSize& size) {
  return std::min(size.num_sets, kSetsPerList);
}

}  // namespace

GroupCache::GroupCache(backend::Device& device,
                       const TableGroup& group,
                       const backend::CacheSize& size,
                       backend::EvictionPolicy policy,
                       const std::optional<backend::WindowSize>& window,
                       const backend::Stream& stream,
                       const backend::Stream& evictions)
    : device_(device),
      group_(group),
      stream_(stream),
      evictions_(evictions),
      recordings_(device, stream_),
      cache_(device, group.layout, size, policy, stream_),
      listed_(device, sets_per_list(size)),
      plan_room_(device, group.layout),
      found_(device),
      overflow_(device, size),
      saved_slots_(device) {
  if (window) {
    constexpr std::uint64_t kWindowsPerHalving = 8;
    window_.emplace(device, *window, stream_);
    halving_log2_ = static_cast<std::uint32_t>(
        std::bit_width(kWindowsPerHalving * static_cast<std::uint64_t>(window->depth)));
  }
  stream_.wait_until_idle();
}

void GroupCache::look_at(GroupPart& part, std::uint32_t batch) {
  make_plan(part);
  device_.touch(
      {view(), window_->view(), part.view(), {.batch = batch, .resolved = last_resolved_}},
      stream_);
  last_looked_at_ = batch;
}

void GroupCache::make_plan(GroupPart& part) {
  plan_room_.make(part, view().size.overflow_rows);
  const backend::BuildPlan operation{part.batch.bags(), view().size.num_sets,
                                     group_.layout.padded_dim, part.view()};
  static_assert(std::has_unique_object_representations_v<backend::BuildPlan>);
  recordings_.run(std::as_bytes(std::span(&operation, 1)),
                  [&](backend::StreamRef stream, bool /*is_recorded*/) {
                    device_.build_plan(operation, stream);
                  });
}

// ------------------------------------------------------------------------------------- resolve

bool GroupCache::resolve(GroupPart& part, const Numbers& numbers, WriteBack& write_back) {
  release_overflow(part, numbers, write_back);
  const bool is_known = window_ && last_looked_at_ >= numbers.batch;
  last_resolved_ = numbers.batch;
  backend::ResolveArguments arguments{
      .batch = numbers.batch,
      .completed = numbers.completed,
      .next_uses = is_known ? window_->next_uses(numbers.batch) : nullptr,
      .num_next_uses = is_known ? window_->view().size.max_keys : 0,
      .halving_log2 = halving_log2_};
  overflow_.give(arguments, stream_);
  device_.resolve({view(), part.view(), arguments, part.plan->misses()}, stream_);
  found_.read(part.plan->misses(), arguments, part.batch.num_ids(), stream_);
  note_crowding();
  evict(part, numbers.step, write_back);
  overflow_.note_needed(found_.shared(), numbers.batch);
  overflow_.take(found_.overflow(), numbers.batch);
  part.made_room.record(evictions_);
  if (!add_misses(part)) return false;
  // Rows that came in an earlier call for this batch have been found now.
  hits_ += std::int64_t{found_.counts().hits} + found_.counts().misses - std::ssize(part.missing);
  return true;
}

/// Saves the rows that make room, which are still in their slots, while the planner goes on.
void GroupCache::evict(GroupPart& part, std::int64_t step, WriteBack& write_back) {
  const auto count = std::ssize(found_.victims());
  if (count == 0) return;
  const backend::MissView& misses = part.plan->misses();
  std::unique_ptr<WriteBack::Rows> rows = write_back.take_free();
  rows->begin(device_, count, group_.layout.row_bytes);
  device_.gather_rows(
      {view(), {misses.writeback_slots, &misses.counts->writebacks, 0, count}, rows->data()},
      evictions_);
  rows->arrive_with(device_, evictions_);
  for (const Key key : found_.victims()) rows->add_key(key);
  write_back.add(std::move(rows), step);
}

void GroupCache::note_crowding() {
  constexpr std::int64_t kKeysPerMiss = 16;
  const std::int64_t num_misses = found_.counts().misses;
  const std::int64_t num_keys = found_.counts().hits + num_misses;
  const bool is_full = misses_ >= view().size.num_slots();
  is_crowded_ = is_crowded_ || (is_full && kKeysPerMiss * num_misses > num_keys);
}

bool GroupCache::add_misses(GroupPart& part) {
  const std::span<const std::int32_t> slots = found_.missing_slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0) continue;
    part.missing.push_back(found_.missing()[i]);
    part.for_slots.push_back(slots[i]);
    ++misses_;
  }
  return std::ranges::find(slots, -1) == slots.end();
}

/// Keys in the device's memory, until the next call.
std::span<const Key> GroupCache::list(const Key* keys, std::int64_t count) {
  keys_.resize(index(count));
  download(device_, keys, std::span(keys_), stream_);
  return keys_;
}

void GroupCache::scatter(GroupPart& part, backend::StreamRef stream) const {
  if (part.missing.empty()) return;
  const std::int32_t* const slots = queue_slots(part, stream);
  device_.scatter_rows(
      {view(),
       {slots + 1, reinterpret_cast<const std::uint32_t*>(slots), 0, std::ssize(part.missing)},
       part.staging.data()},
      stream);
}

void GroupCache::load(GroupPart& part,
                      std::span<const std::byte* const> rows,
                      backend::StreamRef stream) const {
  if (rows.empty()) return;
  const std::int32_t* const slots = queue_slots(part, stream);
  device_.load_rows({view(), slots + 1, reinterpret_cast<const std::uint32_t*>(slots),
                     std::ssize(rows), part.row_places.upload(rows, stream)},
                    stream);
}

const std::int32_t* GroupCache::queue_slots(GroupPart& part, backend::StreamRef stream) {
  part.list.assign(1, static_cast<std::int32_t>(part.for_slots.size()));
  part.list.insert(part.list.end(), part.for_slots.begin(), part.for_slots.end());
  return part.slots.upload(part.list, stream);
}

// ------------------------------------------------------------------------------- overflow rows

/// Frees the rows that no batch needs any more. Other rows come there once those that have changed
/// have been copied.
void GroupCache::release_overflow(GroupPart& part, const Numbers& numbers, WriteBack& write_back) {
  const auto changed = overflow_.release(numbers.completed);
  if (changed.empty()) return;
  auto rows = gather_overflow(changed, part.released, evictions_, write_back);
  rows->arrive_with(device_, evictions_);
  write_back.add(std::move(rows), numbers.step);
}

std::unique_ptr<WriteBack::Rows> GroupCache::gather_overflow(
    std::span<const OverflowRows::Changed> changed,
    QueuedArray<std::int32_t>& list,
    backend::StreamRef stream,
    WriteBack& write_back) {
  std::unique_ptr<WriteBack::Rows> rows = write_back.take_free();
  rows->begin(device_, std::ssize(changed), group_.layout.row_bytes);
  slots_.assign(1, static_cast<std::int32_t>(changed.size()));
  for (const auto& [key, slot] : changed) {
    slots_.push_back(slot);
    rows->add_key(key);
  }
  const std::int32_t* const listed = list.upload(slots_, stream);
  device_.gather_rows(
      {view(),
       {listed + 1, reinterpret_cast<const std::uint32_t*>(listed), 0, std::ssize(changed)},
       rows->data()},
      stream);
  return rows;
}

// ---------------------------------------------------------------------------------------- save

void GroupCache::save(const Numbers& numbers, WriteBack& write_back) {
  const std::int64_t num_sets = view().size.num_sets;
  for (std::int64_t first = 0; first < num_sets; first += kSetsPerList) {
    const backend::SlotList& changed = listed_.view();
    device_.list_slots({view(), first, std::min(kSetsPerList, num_sets - first), changed}, stream_);
    const std::int64_t count = download_one(device_, changed.count, stream_);
    if (count == 0) continue;
    std::unique_ptr<WriteBack::Rows> rows = write_back.take_free();
    rows->begin(device_, count, group_.layout.row_bytes);
    device_.gather_rows({view(), {changed.slots, changed.count, 0, count}, rows->data()}, stream_);
    device_.mark_clean({view(), changed}, stream_);
    for (const Key key : list(changed.keys, count)) rows->add_key(key);
    write_back.add(std::move(rows), numbers.step, WriteBack::Kind::kSaved);
  }
  const auto changed = overflow_.list_changed(numbers.completed);
  if (changed.empty()) return;
  auto rows = gather_overflow(changed, saved_slots_, stream_, write_back);
  stream_.wait_until_idle();
  write_back.add(std::move(rows), numbers.step, WriteBack::Kind::kSaved);
}

}  // namespace satrap::embedding
