#include "src/embedding/group_cache.h"

#include <algorithm>
#include <bit>
#include <numeric>
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
                       const RowGroup& group,
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
      victims_(device),
      missing_(device),
      slots_(device),
      free_overflow_(index(size.overflow_rows)),
      overflow_slots_(device),
      shared_slots_(device),
      listed_slots_(device),
      shared_tags_(device) {
  std::iota(free_overflow_.rbegin(), free_overflow_.rend(),
            static_cast<std::int32_t>(size.num_slots()));
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
  device_.touch(view(), window_->view(), part.view(), {.batch = batch, .resolved = last_resolved_},
                stream_);
  last_looked_at_ = batch;
}

void GroupCache::make_plan(GroupPart& part) {
  plan_room_.make(part, view().size.overflow_rows);
  struct Arguments {
    backend::Bags bags;
    backend::PlanView plan;
  } arguments{part.batch.bags(), part.view()};
  static_assert(std::has_unique_object_representations_v<Arguments>);
  recordings_.run(std::as_bytes(std::span(&arguments, 1)),
                  [&](backend::StreamRef stream, bool /*is_recorded*/) {
                    device_.build_plan(arguments.bags, view().size.num_sets,
                                       group_.layout.padded_dim, arguments.plan, stream);
                  });
}

// ------------------------------------------------------------------------------------- resolve

bool GroupCache::resolve(GroupPart& part, const Numbers& numbers, WriteBack* write_back) {
  release_overflow(numbers, write_back);
  std::vector<std::uint64_t> tags;
  std::vector<std::int32_t> slots;
  for (const auto& [tag, row] : overflow_) {
    tags.push_back(tag);
    slots.push_back(row.slot);
  }
  if (has_other_overflow_) {
    overflow_slots_.upload(std::vector(free_overflow_.rbegin(), free_overflow_.rend()), stream_);
    has_other_overflow_ = false;
  }
  const std::int64_t num_free = std::ssize(free_overflow_);
  const bool is_known = window_ && last_looked_at_ >= numbers.batch;
  last_resolved_ = numbers.batch;
  part.made_room.make_wait(stream_);  // an earlier call's lists are read until then
  device_.resolve(view(), part.view(),
                  {.batch = numbers.batch,
                   .completed = numbers.completed,
                   .overflow_slots = overflow_slots_.data(),
                   .max_overflow = num_free,
                   .shared_tags = shared_tags_.upload(tags, stream_),
                   .shared_slots = shared_slots_.upload(slots, stream_),
                   .num_shared = std::ssize(tags),
                   .next_uses = is_known ? window_->next_uses(numbers.batch) : nullptr,
                   .num_next_uses = is_known ? window_->view().size.max_keys : 0,
                   .halving_log2 = halving_log2_},
                  part.plan->misses(), stream_);
  const backend::ResolveCounts counts = download_one(device_, part.plan->misses().counts, stream_);
  note_crowding(counts);
  read_lists(part.plan->misses(), counts);
  evict(part, numbers.step, write_back);
  if (!tags.empty()) share(part, numbers.batch);
  take_overflow(part, std::min<std::int64_t>(counts.overflows, num_free), numbers.batch);
  if (!add_misses(part)) return false;
  // Rows that came in an earlier call for this batch have been found now.
  hits_ += std::int64_t{counts.hits} + counts.misses - std::ssize(part.missing);
  return true;
}

/// All at once: each wait for the device takes longer than the copies.
void GroupCache::read_lists(const backend::MissView& misses, const backend::ResolveCounts& counts) {
  victim_keys_ = victims_.queue(misses.writeback_keys, counts.writebacks, stream_);
  missing_keys_ = missing_.queue(misses.miss_keys, counts.misses, stream_);
  missing_slots_ = slots_.queue(misses.miss_slots, counts.misses, stream_);
  if (counts.writebacks + counts.misses > 0) stream_.wait_until_idle();
}

/// Saves the rows that make room, which are still in their slots, while the planner goes on.
void GroupCache::evict(GroupPart& part, std::int64_t step, WriteBack* write_back) {
  const auto count = std::ssize(victim_keys_);
  if (count == 0) return;
  SATRAP_CHECK(write_back != nullptr, count, " copies of rows have changed");
  const backend::MissView& misses = part.plan->misses();
  std::unique_ptr<WriteBack::Rows> rows = write_back->take_free();
  rows->begin(device_, count, group_.layout.row_bytes);
  device_.gather_rows(view(), misses.writeback_slots, &misses.counts->writebacks, 0, count,
                      rows->data(), evictions_);
  rows->arrive_with(device_, evictions_);
  part.made_room.record(evictions_);
  for (const Key key : victim_keys_) rows->add_key(key);
  write_back->add(std::move(rows), step);
}

void GroupCache::note_crowding(const backend::ResolveCounts& counts) {
  constexpr std::int64_t kKeysPerMiss = 16;
  const std::int64_t num_keys = std::int64_t{counts.hits} + counts.misses;
  const bool is_full = misses_ >= view().size.num_slots();
  is_crowded_ = is_crowded_ || (is_full && kKeysPerMiss * counts.misses > num_keys);
}

/// Keeps the overflow rows of earlier batches that this one needs too.
void GroupCache::share(const GroupPart& part, std::uint32_t batch) {
  const backend::PlanView plan = part.view();
  if (plan.num_ids == 0) return;
  const std::int64_t num_unique = download_one(device_, plan.counts, stream_).unique;
  std::vector<std::uint64_t> tags(index(num_unique));
  download(device_, plan.unique_tags, std::span(tags), stream_);
  for (auto& [tag, row] : overflow_) {
    if (std::ranges::binary_search(tags, tag)) row.last = batch;
  }
}

void GroupCache::take_overflow(const GroupPart& part, std::int64_t count, std::uint32_t batch) {
  if (count == 0) return;
  for (const Key key : list(part.plan->misses().overflow_keys, count)) {
    overflow_[backend::tag_of(key)] = {free_overflow_.back(), batch, batch};
    free_overflow_.pop_back();
  }
  has_other_overflow_ = true;
}

bool GroupCache::add_misses(GroupPart& part) {
  for (std::size_t i = 0; i < missing_keys_.size(); ++i) {
    if (missing_slots_[i] < 0) continue;
    part.missing.push_back(missing_keys_[i]);
    part.for_slots.push_back(missing_slots_[i]);
    ++misses_;
  }
  return std::ranges::find(missing_slots_, -1) == missing_slots_.end();
}

/// Keys in the device's memory, until the next call.
std::span<const Key> GroupCache::list(const Key* keys, std::int64_t count) {
  keys_.resize(index(count));
  download(device_, keys, std::span(keys_), stream_);
  return keys_;
}

void GroupCache::scatter(GroupPart& part, backend::StreamRef stream) const {
  if (part.missing.empty()) return;
  const std::int32_t* const slots = queue_free_slots(part, stream);
  device_.scatter_rows(view(), slots + 1, reinterpret_cast<const std::uint32_t*>(slots), 0,
                       std::ssize(part.missing), part.staging.data(), stream);
}

void GroupCache::load(GroupPart& part,
                      std::span<const std::byte* const> rows,
                      backend::StreamRef stream) const {
  if (rows.empty()) return;
  const std::int32_t* const slots = queue_free_slots(part, stream);
  device_.load_rows(view(), slots + 1, reinterpret_cast<const std::uint32_t*>(slots),
                    std::ssize(rows), part.row_places.upload(rows, stream), stream);
}

/// Queues the wait until the slots that rows come to are free, and their list.
const std::int32_t* GroupCache::queue_free_slots(GroupPart& part, backend::StreamRef stream) {
  part.made_room.make_wait(stream);
  part.list.assign(1, static_cast<std::int32_t>(part.for_slots.size()));
  part.list.insert(part.list.end(), part.for_slots.begin(), part.for_slots.end());
  return part.slots.upload(part.list, stream);
}

// ------------------------------------------------------------------------------- overflow rows

/// Frees the rows that no batch needs any more.
void GroupCache::release_overflow(const Numbers& numbers, WriteBack* write_back) {
  std::vector<OverflowRows::iterator> over, changed;
  for (auto row = overflow_.begin(); row != overflow_.end(); ++row) {
    if (row->second.last > numbers.completed) continue;
    over.push_back(row);
    if (row->second.saved < row->second.last) changed.push_back(row);
  }
  if (write_back != nullptr) {
    save_overflow(changed, numbers, *write_back, WriteBack::Kind::kEvicted);
  }
  for (const OverflowRows::iterator row : over) {
    free_overflow_.push_back(row->second.slot);
    overflow_.erase(row);
    has_other_overflow_ = true;
  }
}

void GroupCache::save_overflow(const std::vector<OverflowRows::iterator>& rows,
                               const Numbers& numbers,
                               WriteBack& write_back,
                               WriteBack::Kind kind) {
  if (rows.empty()) return;
  std::vector<std::int32_t> slots = {static_cast<std::int32_t>(rows.size())};
  std::unique_ptr<WriteBack::Rows> saved = write_back.take_free();
  saved->begin(device_, std::ssize(rows), group_.layout.row_bytes);
  for (const OverflowRows::iterator row : rows) {
    slots.push_back(row->second.slot);
    saved->add_key(backend::key_of_tag(row->first));
    row->second.saved = numbers.completed;
  }
  const std::int32_t* const listed = listed_slots_.upload(slots, stream_);
  device_.gather_rows(view(), listed + 1, reinterpret_cast<const std::uint32_t*>(listed), 0,
                      std::ssize(rows), saved->data(), stream_);
  stream_.wait_until_idle();
  write_back.add(std::move(saved), numbers.step, kind);
}

// ---------------------------------------------------------------------------------------- save

void GroupCache::save(const Numbers& numbers, WriteBack& write_back) {
  const std::int64_t num_sets = view().size.num_sets;
  for (std::int64_t first = 0; first < num_sets; first += kSetsPerList) {
    const backend::SlotList& changed = listed_.view();
    device_.list_slots(view(), backend::ListMode::kDirty, first,
                       std::min(kSetsPerList, num_sets - first), changed, stream_);
    const std::int64_t count = download_one(device_, changed.count, stream_);
    if (count == 0) continue;
    std::unique_ptr<WriteBack::Rows> rows = write_back.take_free();
    rows->begin(device_, count, group_.layout.row_bytes);
    device_.gather_rows(view(), changed.slots, changed.count, 0, count, rows->data(), stream_);
    device_.mark_clean(view(), changed, stream_);
    for (const Key key : list(changed.keys, count)) rows->add_key(key);
    write_back.add(std::move(rows), numbers.step, WriteBack::Kind::kSaved);
  }
  std::vector<OverflowRows::iterator> overflow_rows;
  for (auto row = overflow_.begin(); row != overflow_.end(); ++row) {
    const Overflow& overflow = row->second;
    // A row that no completed batch has needed is as it was fetched, or not yet there.
    const std::uint32_t updated = std::min(overflow.last, numbers.completed);
    if (overflow.first <= numbers.completed && overflow.saved < updated)
      overflow_rows.push_back(row);
  }
  save_overflow(overflow_rows, numbers, write_back, WriteBack::Kind::kSaved);
}

}  // namespace satrap::embedding
