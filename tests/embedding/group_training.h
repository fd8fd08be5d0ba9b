#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/backend/cache.h"
#include "satrap/backend/device_plan.h"
#include "satrap/backend/stream.h"
#include "satrap/embedding/group_batch.h"
#include "satrap/embedding/table_groups.h"
#include "satrap/table/row_store.h"
#include "tests/support/device/device.h"

namespace satrap::embedding {

/// A table group's rows on the device under test. Every row that is requested stays in the cache.
/// Rows come from a store, and return to it at the end.
class GroupOnDevice {
 public:
  GroupOnDevice(const TableGroup& group,
                const FeatureLayout& layout,
                std::int64_t max_ids,
                table::RowStore& store,
                ThreadPool& pool)
      : group_(group),
        store_(store),
        batch_(testing::device(), layout, group, pool),
        cache_(testing::device(), group.layout, kSize, backend::EvictionPolicy::kLru, stream_),
        scratch_(testing::device(), max_ids, group.layout),
        plan_(testing::device(), scratch_, 0),
        staging_(testing::device(),
                 backend::Place::kPinnedHost,
                 kSize.num_slots() * group.layout.row_bytes,
                 "rows of a test") {}

  void lookup(const data::Batch& batch, std::int64_t row_stride, std::int64_t step, float* out) {
    batch_.fill(batch, row_stride);
    batch_.upload(stream_);
    const backend::Bags bags = batch_.bags();
    const backend::PlanView plan = plan_.view(bags.num_ids);
    device().build_plan({bags, kSize.num_sets, group_.layout.padded_dim, plan}, stream_);
    device().resolve({cache_.view(),
                      plan,
                      {.batch = static_cast<std::uint32_t>(step),
                       .completed = static_cast<std::uint32_t>(step - 1)},
                      plan_.misses()},
                     stream_);
    fetch_misses();
    device().pool_forward({cache_.view(), bags, plan, FloatType::kFp32, out}, stream_);
    stream_.wait_until_idle();
  }

  void update(const float* grad, const TableStep* steps) {
    device().backward_update({cache_.view(), plan_.view(batch_.num_ids()), FloatType::kFp32, grad,
                              group_.optimizer, steps},
                             stream_);
    stream_.wait_until_idle();
  }

  void put_back(std::int64_t step) {
    const backend::SlotListBuffer list(device(), kSize.num_sets);
    device().list_slots({cache_.view(), 0, kSize.num_sets, list.view()}, stream_);
    device().gather_rows({cache_.view(),
                          {list.view().slots, list.view().count, 0, kSize.num_slots()},
                          staging_.data()},
                         stream_);
    stream_.wait_until_idle();
    const auto count = testing::download(list.view().count, 1)[0];
    const auto [keys, rows] = ascending(testing::download(list.view().keys, count));
    const std::vector<const std::byte*> from(rows.begin(), rows.end());
    store_.put(step, keys, from);
  }

 private:
  static constexpr backend::CacheSize kSize{32, 0};
  static backend::Device& device() { return testing::device(); }

  void fetch_misses() {
    stream_.wait_until_idle();
    const backend::MissView& misses = plan_.misses();
    const auto counts = testing::download(misses.counts, 1)[0];
    ASSERT_EQ(counts.writebacks, 0U) << "the cache is too small for this test";
    ASSERT_EQ(counts.overflows, 0U) << "the cache is too small for this test";
    const auto [keys, rows] = ascending(testing::download(misses.miss_keys, counts.misses));
    store_.fetch(keys, rows);
    device().scatter_rows({cache_.view(),
                           {misses.miss_slots, &misses.counts->misses, 0, counts.misses},
                           staging_.data()},
                          stream_);
  }

  /// The keys of a list in the ascending order that a store requires, with the addresses of their
  /// rows in staging, where they are in the order of the list.
  std::pair<std::vector<Key>, std::vector<std::byte*>> ascending(const std::vector<Key>& list) {
    std::vector<std::size_t> order(list.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return list[i]; });
    std::pair<std::vector<Key>, std::vector<std::byte*>> out;
    for (const std::size_t i : order) {
      out.first.push_back(list[i]);
      out.second.push_back(staging_.data() +
                           static_cast<std::int64_t>(i) * group_.layout.row_bytes);
    }
    return out;
  }

  const TableGroup& group_;
  table::RowStore& store_;
  const backend::Stream stream_{testing::device()};
  GroupBatch batch_;
  const backend::Cache cache_;
  const backend::PlanScratch scratch_;
  const backend::DevicePlan plan_;
  const backend::Memory staging_;  // [num_slots, row_bytes]
};

}  // namespace satrap::embedding
