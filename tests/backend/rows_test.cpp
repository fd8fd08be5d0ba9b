#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

#include "satrap/backend/device_plan.h"
#include "satrap/core/error.h"
#include "tests/backend/host_rows.h"

namespace satrap::testing {
namespace {

using backend::CacheSize;
using backend::EvictionPolicy;

RowLayout adam_layout(std::int64_t dim) {
  return RowLayout::of(dim, FloatType::kFp32, RowOptimizerType::kAdam);
}

TEST(DeviceRows, GoOutAndComeBackInChunks) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t dim : {4, 12, 64, 1024}) {
    SCOPED_TRACE(dim);
    const RowLayout layout = adam_layout(dim);
    const CacheSize size{2, 3};
    Random random(1);
    const auto rows = random_rows(layout, size.total_slots(), random);
    const auto slots = random_slots(50, size.total_slots(), true, random);
    const std::vector<std::uint32_t> count{45};  // of the 50
    const DeviceArray<std::int32_t> slots_on_device(slots);
    const DeviceArray<std::uint32_t> count_on_device(count);
    const std::int64_t kChunkRows = 16;
    const DeviceArray<std::byte> staging(kChunkRows * layout.row_bytes);
    for_each_schedule([&] {
      const backend::Stream stream(device());
      const backend::Cache from(device(), layout, size, EvictionPolicy::kLru, stream);
      const backend::Cache to(device(), layout, size, EvictionPolicy::kLru, stream);
      device().copy(from.view().rows, rows.data(), static_cast<std::int64_t>(rows.size()), stream);
      device().fill(to.view().rows, 0x11, static_cast<std::int64_t>(rows.size()), stream);
      device().fill(from.view().dirty, backend::kChanged, size.num_slots(), stream);
      for (std::int64_t begin = 0; begin < 50; begin += kChunkRows) {
        device().gather_rows({from.view(),
                              {slots_on_device.data(), count_on_device.data(), begin, kChunkRows},
                              staging.data()},
                             stream);
        device().scatter_rows({to.view(),
                               {slots_on_device.data(), count_on_device.data(), begin, kChunkRows},
                               staging.data()},
                              stream);
      }
      stream.wait_until_idle();
      std::vector<std::byte> expected(rows.size(), std::byte{0x11});
      std::vector<std::uint8_t> marks(static_cast<std::size_t>(size.num_slots()),
                                      backend::kChanged);
      for (std::size_t i = 0; i < 45; ++i) {
        if (slots[i] < 0) continue;
        if (slots[i] < size.num_slots())
          marks[static_cast<std::size_t>(slots[i])] = backend::kGathered;
        std::memcpy(expected.data() + slots[i] * layout.device_stride,
                    rows.data() + slots[i] * layout.device_stride,
                    static_cast<std::size_t>(layout.row_bytes));
      }
      ASSERT_TRUE(download(to.view().rows, static_cast<std::int64_t>(rows.size())) == expected);
      ASSERT_EQ(download(from.view().dirty, size.num_slots()), marks);
    });
  }
}

/// Rows are spread over registered pages and the device's memory, in any order.
TEST(DeviceRows, ComeFromWhereTheyAreAsFromStaging) {
  SATRAP_NEEDS_DEVICE();
  constexpr std::size_t kPage = 4096;
  for (const std::int64_t dim : {1, 12, 64}) {
    for (const FloatType type : {FloatType::kFp32, FloatType::kBf16}) {
      SCOPED_TRACE(concat("dim ", dim, ", ", static_cast<int>(type)));
      const RowLayout layout = RowLayout::of(dim, type, RowOptimizerType::kAdam);
      const CacheSize size{2, 3};
      Random random(7);
      const auto slots = random_slots(50, size.total_slots(), true, random);
      const DeviceArray<std::int32_t> slots_on_device(slots);
      const auto row_bytes = static_cast<std::size_t>(layout.row_bytes);
      const std::size_t bytes = (50 * row_bytes + kPage - 1) / kPage * kPage;
      const std::unique_ptr<std::byte, decltype(&std::free)> pages(
          static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)), &std::free);
      for (std::size_t i = 0; i < bytes; ++i) pages.get()[i] = std::byte(random.below(256));
      const backend::HostRegistration registered(device(), pages.get(),
                                                 static_cast<std::int64_t>(bytes));
      ASSERT_EQ(registered.why_not(), "");
      const DeviceArray<std::byte> staging(
          std::vector<std::byte>(pages.get(), pages.get() + 50 * row_bytes));
      std::vector<const std::byte*> places;
      for (std::size_t i = 0; i < 50; ++i) {
        places.push_back((i % 3 == 0 ? staging.data() : pages.get()) + i * row_bytes);
      }
      const DeviceArray<const std::byte*> places_on_device(places);
      for (const std::uint32_t count : {0, 1, 45, 50}) {
        const DeviceArray<std::uint32_t> count_on_device(std::vector{count});
        for_each_schedule([&] {
          const backend::Stream stream(device());
          const auto fill = [&](const auto& load) {
            const backend::Cache cache(device(), layout, size, EvictionPolicy::kLru, stream);
            const std::int64_t all = size.total_slots() * layout.device_stride;
            device().fill(cache.view().rows, 0x11, all, stream);
            load(cache.view());
            stream.wait_until_idle();
            return download(cache.view().rows, all);
          };
          const auto expected = fill([&](const backend::CacheView& cache) {
            device().scatter_rows(
                {cache, {slots_on_device.data(), count_on_device.data(), 0, 50}, staging.data()},
                stream);
          });
          const auto found = fill([&](const backend::CacheView& cache) {
            device().load_rows({cache, slots_on_device.data(), count_on_device.data(), 50,
                                places_on_device.data()},
                               stream);
          });
          ASSERT_TRUE(found == expected) << count << " rows";
        });
      }
    }
  }
}

TEST(DeviceRows, ListsOfDirtySlots) {
  SATRAP_NEEDS_DEVICE();
  const RowLayout layout = adam_layout(4);
  const CacheSize size{9, 1};
  Random random(2);
  std::vector<std::uint8_t> digests, dirty;
  std::vector<std::uint64_t> tags;
  for (std::int64_t s = 0; s < size.num_slots(); ++s) {
    digests.push_back(random.below(3) == 0 ? 0 : 7);
    dirty.push_back(static_cast<std::uint8_t>(random.below(3)));
    tags.push_back(backend::tag_of(make_key(TableId{5}, static_cast<std::uint64_t>(s) + 100)));
  }
  for_each_schedule([&] {
    const backend::Stream stream(device());
    const backend::Cache cache(device(), layout, size, EvictionPolicy::kLru, stream);
    const backend::SlotListBuffer list(device(), 5);
    stream.wait_until_idle();
    upload(digests, cache.view().digests);
    upload(dirty, cache.view().dirty);
    upload(tags, cache.view().tags);
    for (std::int64_t first = 0; first < 9; first += 5) {
      const std::int64_t num_sets = std::min<std::int64_t>(5, 9 - first);
      std::vector<std::int32_t> expected;
      std::vector<Key> keys;
      for (std::int64_t s = first * 32; s < (first + num_sets) * 32; ++s) {
        const auto i = static_cast<std::size_t>(s);
        if (digests[i] == 0 || dirty[i] == 0) continue;
        expected.push_back(static_cast<std::int32_t>(s));
        keys.push_back(backend::key_of_tag(tags[i]));
      }
      device().list_slots({cache.view(), first, num_sets, list.view()}, stream);
      stream.wait_until_idle();
      ASSERT_EQ(download(list.view().count, 1)[0], expected.size());
      ASSERT_EQ(download(list.view().slots, static_cast<std::int64_t>(expected.size())), expected);
      ASSERT_EQ(download(list.view().keys, static_cast<std::int64_t>(keys.size())), keys);
    }
  });
}

TEST(DeviceRows, SavedSlotsAreCleanUnlessTheyHaveChangedSince) {
  SATRAP_NEEDS_DEVICE();
  const CacheSize size{2, 1};
  for_each_schedule([&] {
    const backend::Stream stream(device());
    const backend::Cache cache(device(), adam_layout(4), size, EvictionPolicy::kLru, stream);
    const backend::SlotListBuffer list(device(), 1);
    const DeviceArray<std::byte> staging(32 * cache.view().layout.row_bytes);
    stream.wait_until_idle();
    upload(std::vector<std::uint8_t>(64, 1), cache.view().digests);
    auto marks = std::vector<std::uint8_t>(64, backend::kChanged);
    upload(marks, cache.view().dirty);
    upload(std::vector<std::uint64_t>(64, 1), cache.view().tags);
    device().list_slots({cache.view(), 1, 1, list.view()}, stream);
    device().mark_clean({cache.view(), list.view()}, stream);
    stream.wait_until_idle();
    ASSERT_EQ(download(cache.view().dirty, 64), marks) << "none has been gathered";

    device().gather_rows(
        {cache.view(), {list.view().slots, list.view().count, 0, 32}, staging.data()}, stream);
    stream.wait_until_idle();
    std::fill(marks.begin() + 32, marks.end(), backend::kGathered);
    ASSERT_EQ(download(cache.view().dirty, 64), marks);
    marks[40] = backend::kChanged;  // updated, or replaced by a row that was
    marks[41] = backend::kClean;    // replaced
    upload(marks, cache.view().dirty);
    device().mark_clean({cache.view(), list.view()}, stream);
    stream.wait_until_idle();
    std::fill(marks.begin() + 32, marks.end(), backend::kClean);
    marks[40] = backend::kChanged;
    ASSERT_EQ(download(cache.view().dirty, 64), marks);
  });
}

/// Evicted rows leave on the copy stream while new rows wait for them, as in every exchange of
/// rows.
TEST(DeviceRows, VictimsAreSavedBeforeTheirRowsAreOverwritten) {
  SATRAP_NEEDS_DEVICE();
  const RowLayout layout = adam_layout(8);
  const CacheSize size{1, 1};
  Random random(4);
  const auto old_rows = random_rows(layout, 33, random);
  const auto new_rows = random_rows(layout, 33, random);
  std::vector<std::int32_t> slots(32);
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int32_t>(31 - i);
  const DeviceArray<std::int32_t> slots_on_device(slots);
  const DeviceArray<std::uint32_t> count(std::vector<std::uint32_t>{32});
  // Staging holds rows in the host's layout.
  std::vector<std::byte> new_on_host(static_cast<std::size_t>(32 * layout.row_bytes));
  for (std::int64_t i = 0; i < 32; ++i) {
    layout.from_device(new_rows.data() + i * layout.device_stride,
                       new_on_host.data() + i * layout.row_bytes);
  }
  const DeviceArray<std::byte> fetched(new_on_host);
  const DeviceArray<std::byte> victims(32 * layout.row_bytes);
  for_each_schedule([&] {
    const backend::Stream prefetch(device()), copies(device());
    backend::Event saved(device());
    const backend::Cache cache(device(), layout, size, EvictionPolicy::kLru, prefetch);
    prefetch.wait_until_idle();
    upload(old_rows, cache.view().rows);
    device().gather_rows(
        {cache.view(), {slots_on_device.data(), count.data(), 0, 32}, victims.data()}, copies);
    saved.record(copies);
    saved.make_wait(prefetch);
    device().scatter_rows(
        {cache.view(), {slots_on_device.data(), count.data(), 0, 32}, fetched.data()}, prefetch);
    prefetch.wait_until_idle();
    copies.wait_until_idle();
    const auto saved_rows = victims.host();
    const auto now = download(cache.view().rows, 32 * layout.device_stride);
    std::vector<std::byte> old_row(static_cast<std::size_t>(layout.row_bytes));
    for (std::int64_t i = 0; i < 32; ++i) {
      const std::int64_t at = slots[static_cast<std::size_t>(i)] * layout.device_stride;
      layout.from_device(old_rows.data() + at, old_row.data());
      ASSERT_EQ(
          std::memcmp(saved_rows.data() + i * layout.row_bytes, old_row.data(), old_row.size()), 0);
      ASSERT_EQ(
          std::memcmp(now.data() + at, new_rows.data() + i * layout.device_stride, old_row.size()),
          0);
    }
  });
}

}  // namespace
}  // namespace satrap::testing
