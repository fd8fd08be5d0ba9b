#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/backend/cache.h"
#include "satrap/backend/device_plan.h"
#include "satrap/backend/window.h"
#include "tests/backend/host_cache.h"
#include "tests/backend/host_plan.h"
#include "tests/backend/host_rows.h"
#include "tests/backend/host_window.h"

namespace satrap::testing {

/// A cache on the device and one on the host, which process the same batches; with a window if
/// window.depth > 0.
class Twins {
 public:
  Twins(const backend::CacheSize& size,
        backend::EvictionPolicy policy,
        std::int64_t max_ids,
        const backend::WindowSize& window = {})
      : size_(size),
        layout_(RowLayout::of(4, FloatType::kFp32, RowOptimizerType::kAdagrad)),
        policy_(policy),
        host_(size, policy),
        cache_(device(), layout_, size, policy, stream_),
        scratch_(device(), max_ids, layout_),
        plan_(device(), scratch_, size.overflow_rows) {
    if (window.depth == 0) return;
    window_.emplace(device(), window, stream_);
    host_window_.emplace(window);
  }

  /// Touches the batch on both, and compares the window.
  void touch(const HostBatch& batch, const backend::TouchArguments& arguments) {
    const auto tags = make_host_plan(batch).tags;
    host_window_->touch(tags, arguments.batch, arguments.resolved);
    for (const auto tag : tags) host_.touch(tag, arguments.batch, arguments.resolved);

    const DeviceBatch on_device(batch);
    const backend::PlanView view = plan_.view(batch.num_ids());
    device().build_plan({on_device.bags(), size_.num_sets, layout_.padded_dim, view}, stream_);
    device().touch({cache_.view(), window_->view(), view, arguments}, stream_);
    stream_.wait_until_idle();
    compare_window();
  }

  /// Resolves the batch on both, and compares everything.
  HostCache::Found resolve(const HostBatch& batch,
                           backend::ResolveArguments arguments,
                           const HostCache::Overflow& overflow = {}) {
    const HostPlan expected_plan = make_host_plan(batch);
    std::vector<std::uint32_t> occurrences;
    for (const auto& list : expected_plan.occurrences) {
      occurrences.push_back(static_cast<std::uint32_t>(list.size()));
    }
    std::vector<std::uint32_t> next_uses;
    if (window_) {
      next_uses = host_window_->line(arguments.batch);
      next_uses.resize(std::min(next_uses.size(), expected_plan.tags.size()));
      arguments.next_uses = window_->next_uses(arguments.batch);
      arguments.num_next_uses = window_->view().size.max_keys;
    }
    const auto expected =
        host_.resolve(expected_plan.tags, occurrences, arguments, overflow, next_uses);

    std::vector<backend::OverflowRow> shared;
    std::vector<std::uint32_t> needed;
    for (const auto& [tag, slot] : overflow.shared) {
      shared.push_back({.tag = tag, .slot = slot});
      needed.push_back(std::ranges::binary_search(expected_plan.tags, tag) ? 1 : 0);
    }
    const DeviceArray<std::int32_t> overflow_slots(overflow.slots);
    const DeviceArray<backend::OverflowRow> shared_on_device(shared);
    arguments.overflow_slots = overflow_slots.data();
    arguments.max_overflow = std::ssize(overflow.slots);
    arguments.shared = shared_on_device.data();
    arguments.num_shared = std::ssize(shared);

    const DeviceBatch on_device(batch);
    const backend::PlanView view = plan_.view(batch.num_ids());
    const backend::MissView& misses = plan_.misses();
    device().build_plan({on_device.bags(), size_.num_sets, layout_.padded_dim, view}, stream_);
    device().resolve({cache_.view(), view, arguments, misses}, stream_);
    stream_.wait_until_idle();

    const auto counts = download(misses.counts, 1)[0];
    EXPECT_EQ(counts.hits, expected.hits);
    EXPECT_EQ(counts.misses, expected.miss_keys.size());
    EXPECT_EQ(counts.writebacks, expected.writeback_keys.size());
    EXPECT_EQ(counts.overflows, expected.overflows);
    EXPECT_EQ(download(view.slots, static_cast<std::int64_t>(expected.slots.size())),
              expected.slots);
    EXPECT_EQ(download(misses.miss_keys, counts.misses), expected.miss_keys);
    EXPECT_EQ(download(misses.miss_slots, counts.misses), expected.miss_slots);
    EXPECT_EQ(download(misses.writeback_keys, counts.writebacks), expected.writeback_keys);
    EXPECT_EQ(download(misses.writeback_slots, counts.writebacks), expected.writeback_slots);
    EXPECT_EQ(
        download(misses.overflow_keys, static_cast<std::int64_t>(expected.overflow_keys.size())),
        expected.overflow_keys);
    const auto shared_after = download(shared_on_device.data(), std::ssize(shared));
    for (std::size_t i = 0; i < shared.size(); ++i) {
      EXPECT_EQ(shared_after[i].is_needed, needed[i]) << "shared row " << i;
    }
    return expected;
  }

  /// Every second slot of the batch is updated.
  void dirty(const HostCache::Found& found) {
    auto dirty = download(cache_.view().dirty, size_.num_slots());
    for (std::size_t i = 0; i < found.slots.size(); i += 2) {
      const std::int32_t slot = found.slots[i];
      if (slot < 0 || slot >= size_.num_slots()) continue;
      dirty[static_cast<std::size_t>(slot)] = 1;
      host_.way(slot).dirty = true;
    }
    upload(dirty, cache_.view().dirty);
  }

  void compare_bookkeeping() {
    const backend::CacheView& view = cache_.view();
    const auto digests = download(view.digests, size_.num_slots());
    const auto tags = download(view.tags, size_.num_slots());
    const auto last_needed = download(view.last_needed, size_.num_slots());
    const auto frequency = download(view.frequency, size_.num_slots());
    const auto next_use = download(view.next_use, size_.num_slots());
    for (std::size_t s = 0; s < digests.size(); ++s) {
      const HostCache::Way& way = host_.ways()[s];
      ASSERT_EQ(digests[s] != 0, way.occupied) << "slot " << s;
      if (!way.occupied) continue;
      ASSERT_EQ(tags[s], way.tag) << "slot " << s;
      ASSERT_EQ(last_needed[s], way.last_needed) << "slot " << s;
      if (policy_ == backend::EvictionPolicy::kLru) continue;
      ASSERT_EQ(frequency[s], way.frequency) << "slot " << s;
      if (policy_ != backend::EvictionPolicy::kLookahead) continue;
      ASSERT_EQ(next_use[s], way.next_use) << "slot " << s;
    }
  }

  /// Overflow rows [begin, end) of the cache, for a batch to use.
  HostCache::Overflow rows(std::int32_t begin, std::int32_t end) const {
    HostCache::Overflow overflow;
    for (std::int32_t row = begin; row < end; ++row) {
      overflow.slots.push_back(static_cast<std::int32_t>(size_.num_slots()) + row);
    }
    return overflow;
  }

  HostCache& host() { return host_; }
  const backend::CacheView& view() const { return cache_.view(); }

 private:
  void compare_window() {
    const backend::WindowView& view = window_->view();
    const std::int64_t entries = view.size.num_sets * backend::CacheSize::kWays;
    const auto tags = download(view.tags, entries);
    const auto batches = download(view.batches, entries);
    const auto notes = download(view.notes, entries);
    for (std::size_t e = 0; e < batches.size(); ++e) {
      const HostWindow::Entry& entry =
          host_window_->entries()[e / backend::CacheSize::kWays][e % backend::CacheSize::kWays];
      ASSERT_EQ(batches[e], entry.batch) << "entry " << e;
      if (entry.batch == 0) continue;
      ASSERT_EQ(tags[e], entry.tag) << "entry " << e;
      ASSERT_EQ(notes[e], entry.number < view.size.max_keys
                              ? entry.batch % view.size.depth * view.size.max_keys + entry.number
                              : backend::WindowView::kNoNote)
          << "entry " << e;
    }
    for (std::int64_t line = 0; line < view.size.depth; ++line) {
      ASSERT_EQ(download(view.next_uses + line * view.size.max_keys, view.size.max_keys),
                host_window_->line(static_cast<std::uint32_t>(line)))
          << "line " << line;
    }
  }

  backend::CacheSize size_;
  RowLayout layout_;
  backend::EvictionPolicy policy_;
  HostCache host_;
  std::optional<HostWindow> host_window_;
  backend::Stream stream_{device()};
  backend::Cache cache_;
  std::optional<backend::Window> window_;
  backend::PlanScratch scratch_;
  backend::DevicePlan plan_;
};

inline HostBatch batch_of(const std::vector<std::uint64_t>& ids) {
  HostBatch batch;
  batch.num_examples = 1;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  for (const std::uint64_t id : ids) batch.keys.push_back(make_key(TableId{}, id));
  batch.offsets = {0, batch.num_ids()};
  return batch;
}

inline std::vector<std::uint64_t> range(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t id = begin; id < end; ++id) ids.push_back(id);
  return ids;
}

}  // namespace satrap::testing
