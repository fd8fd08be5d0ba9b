#include "src/embedding/overflow_rows.h"

#include <algorithm>
#include <map>
#include <random>
#include <ranges>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/device/device.h"

namespace satrap::embedding {
namespace {

using satrap::testing::device;
using satrap::testing::download;

constexpr std::int32_t kNumSlots = 64, kNumRows = 40;
constexpr backend::CacheSize kSize{.num_sets = kNumSlots / backend::CacheSize::kWays,
                                   .overflow_rows = kNumRows};

/// What resolve would read, once it runs.
struct Given {
  std::vector<std::int32_t> free;
  std::vector<backend::OverflowRow> shared;
};
Given give(OverflowRows& rows, const backend::Stream& stream) {
  backend::ResolveArguments arguments;
  rows.give(arguments, stream);
  stream.wait_until_idle();
  return {download(arguments.overflow_slots, arguments.max_overflow),
          download(arguments.shared, arguments.num_shared)};
}

/// The obvious one: a list of rows.
struct ListOfRows {
  struct Row {
    std::int32_t slot;
    std::uint32_t first, last;
    std::uint32_t updates_listed;  // of batches up to it
  };
  std::map<std::uint64_t, Row> rows;  // by tag

  std::vector<std::pair<Key, std::int32_t>> list_changed(std::uint32_t completed) {
    std::vector<std::pair<Key, std::int32_t>> changed;
    for (auto& [tag, row] : rows) {
      for (std::uint32_t batch = row.first; batch <= completed; ++batch) {
        if (batch > row.last || batch <= row.updates_listed) continue;
        changed.emplace_back(backend::key_of_tag(tag), row.slot);
        break;
      }
      row.updates_listed = std::max(row.updates_listed, completed);
    }
    return changed;
  }
};

std::vector<std::pair<Key, std::int32_t>> pairs(std::span<const OverflowRows::Changed> changed) {
  std::vector<std::pair<Key, std::int32_t>> found;
  for (const auto& [key, slot] : changed) found.emplace_back(key, slot);
  return found;
}

TEST(OverflowRows, AreThoseOfAListOverRandomBatches) {
  SATRAP_NEEDS_DEVICE();
  for (const unsigned seed : std::views::iota(1U, 9U)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const backend::Stream stream(device());
    OverflowRows rows(device(), kSize);
    ListOfRows model;
    std::uint32_t completed = 0;
    bool has_been_full = false;
    for (std::uint32_t batch = 1; batch <= 200; ++batch) {
      completed = std::max(completed,
                           batch - 1 - static_cast<std::uint32_t>(random() % std::min(batch, 5U)));
      if (random() % 8 == 0) {
        EXPECT_EQ(pairs(rows.list_changed(completed)), model.list_changed(completed));
      }
      // Those that nothing needs after `completed` leave; the list has what the model says of them.
      ListOfRows leaving;
      std::erase_if(model.rows, [&](const auto& entry) {
        if (entry.second.last > completed) return false;
        leaving.rows.insert(entry);
        return true;
      });
      EXPECT_EQ(pairs(rows.release(completed)), leaving.list_changed(completed));

      Given given = give(rows, stream);
      std::set<std::int32_t> all(given.free.begin(), given.free.end());
      ASSERT_EQ(given.shared.size(), model.rows.size());
      auto expected = model.rows.begin();
      for (const backend::OverflowRow& shared : given.shared) {
        EXPECT_EQ(shared.tag, expected->first);
        EXPECT_EQ(shared.slot, expected->second.slot);
        EXPECT_EQ(shared.is_needed, 0U);
        all.insert(shared.slot);
        ++expected;
      }
      ASSERT_EQ(given.free.size() + given.shared.size(), std::size_t{kNumRows});
      ASSERT_EQ(all.size(), std::size_t{kNumRows});  // each is free or in use
      EXPECT_GE(*all.begin(), kNumSlots);
      EXPECT_LT(*all.rbegin(), kNumSlots + kNumRows);

      for (backend::OverflowRow& shared : given.shared) {
        shared.is_needed = random() % 3 == 0 ? 1 : 0;
        if (shared.is_needed != 0) model.rows.at(shared.tag).last = batch;
      }
      rows.note_needed(given.shared, batch);
      const std::size_t count = std::min<std::size_t>(random() % 25, given.free.size());
      has_been_full = has_been_full || count == given.free.size();
      std::vector<Key> taking;
      while (taking.size() < count) {
        const Key key = make_key(TableId{0}, 1000 * batch + taking.size());
        model.rows[backend::tag_of(key)] = {given.free[taking.size()], batch, batch, 0};
        taking.push_back(key);
      }
      rows.take(taking, batch);
    }
    EXPECT_TRUE(has_been_full);
  }
}

TEST(OverflowRows, MayBeNone) {
  SATRAP_NEEDS_DEVICE();
  const backend::Stream stream(device());
  OverflowRows rows(device(), {.num_sets = 1, .overflow_rows = 0});
  const Given given = give(rows, stream);
  EXPECT_TRUE(given.free.empty());
  EXPECT_TRUE(given.shared.empty());
  EXPECT_TRUE(rows.release(1).empty());
}

}  // namespace
}  // namespace satrap::embedding
