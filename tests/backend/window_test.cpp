#include "satrap/backend/window.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/backend/cache_twins.h"

namespace satrap::testing {
namespace {

using backend::CacheSize;
using backend::EvictionPolicy;
using backend::WindowSize;

TEST(DeviceWindow, SaysWhatItsPartsTake) {
  EXPECT_EQ((WindowSize{.depth = 5, .max_keys = 100, .num_sets = 2}.bytes()),
            5 * 100 * 4 + 2 * 32 * 16);
}

/// Fills a set with ids 0 to 31, evicts one for id 100 of batch 2, and returns how many keys of
/// batches 3 and 4 are found then. The window holds all four.
std::pair<std::uint32_t, std::uint32_t> hits_after_eviction(
    const std::vector<std::uint64_t>& third,
    const std::vector<std::uint64_t>& fourth) {
  Twins twins({1, 4}, EvictionPolicy::kLookahead, 64, {.depth = 4, .max_keys = 64, .num_sets = 8});
  twins.touch(batch_of(range(0, 32)), {.batch = 1, .resolved = 0});
  twins.touch(batch_of({100}), {.batch = 2, .resolved = 0});
  twins.touch(batch_of(third), {.batch = 3, .resolved = 0});
  twins.touch(batch_of(fourth), {.batch = 4, .resolved = 0});
  twins.dirty(twins.resolve(batch_of(range(0, 32)), {.batch = 1}));
  twins.compare_bookkeeping();
  twins.resolve(batch_of({100}), {.batch = 2, .completed = 1});
  const auto hits = twins.resolve(batch_of(third), {.batch = 3, .completed = 2}).hits;
  return {hits, twins.resolve(batch_of(fourth), {.batch = 4, .completed = 3}).hits};
}

std::vector<std::uint64_t> all_but(const std::vector<std::uint64_t>& missing) {
  auto ids = range(0, 32);
  std::erase_if(ids, [&](std::uint64_t id) { return std::ranges::count(missing, id) != 0; });
  return ids;
}

TEST(DeviceWindow, IfAllRowsAreNeededTheOneNeededLastGoes) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    EXPECT_EQ(hits_after_eviction(all_but({5}), {5}), std::pair(31U, 0U));
    EXPECT_EQ(hits_after_eviction(all_but({5, 6}), {6, 5}), std::pair(30U, 1U));
  });
}

TEST(DeviceWindow, TheRowThatNoBatchNeedsGoesBeforeOneThatIsNeededLast) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    EXPECT_EQ(hits_after_eviction(all_but({5, 17}), {17}), std::pair(30U, 1U));
    EXPECT_EQ(hits_after_eviction(all_but({5, 17}), {5}), std::pair(30U, 1U));
  });
}

TEST(DeviceWindow, AmongRowsThatNoBatchNeedsTheRarestGoesAndTheHotCool) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    Twins twins({1, 40}, EvictionPolicy::kLookahead, 64,
                {.depth = 1, .max_keys = 64, .num_sets = 8});
    // 0 occurs nine times in batch 1, then never again; the others occur twice in batch 16.
    std::vector<std::uint64_t> hot(9, 0);
    twins.touch(batch_of(hot), {.batch = 1, .resolved = 0});
    twins.resolve(batch_of(hot), {.batch = 1, .halving_log2 = 2});
    auto others = range(1, 32);
    const auto again = range(1, 32);
    others.insert(others.end(), again.begin(), again.end());
    twins.touch(batch_of(others), {.batch = 16, .resolved = 15});
    twins.resolve(batch_of(others), {.batch = 16, .completed = 15, .halving_log2 = 2});
    twins.compare_bookkeeping();
    twins.touch(batch_of({100}), {.batch = 17, .resolved = 16});
    twins.resolve(batch_of({100}), {.batch = 17, .completed = 16, .halving_log2 = 2});
    twins.touch(batch_of({0}), {.batch = 18, .resolved = 17});
    EXPECT_EQ(twins.resolve(batch_of({0}), {.batch = 18, .completed = 17, .halving_log2 = 2}).hits,
              0)
        << "nine occurrences, halved four times, are fewer than two";
  });
}

/// Random batches with keys that come and go; `sizes` are their numbers of examples.
std::vector<HostBatch> batches_of(std::int64_t distinct_ids,
                                  const std::vector<std::int64_t>& sizes) {
  std::vector<HostBatch> batches;
  for (const std::int64_t size : sizes) {
    batches.push_back(
        random_batch({.num_examples = size, .max_bag = 8, .distinct_ids = distinct_ids, .dim = 4},
                     batches.size()));
  }
  return batches;
}

/// Batches through a cache: `ahead` are touched before each is resolved, and `pinned` are
/// unfinished. Calls check(last touched, last resolved) after each.
template <class Check>
void run(Twins& twins,
         const std::vector<HostBatch>& batches,
         std::uint32_t ahead,
         std::uint32_t pinned,
         Check check) {
  std::uint32_t touched = 0;
  for (std::uint32_t b = 1; b <= batches.size(); ++b) {
    while (touched < std::min<std::size_t>(b + ahead, batches.size())) {
      ++touched;
      twins.touch(batches[touched - 1], {.batch = touched, .resolved = b - 1});
      check(touched, b - 1);
    }
    twins.dirty(twins.resolve(
        batches[b - 1], {.batch = b, .completed = b > pinned ? b - pinned : 0, .halving_log2 = 2},
        twins.rows(0, 200)));
    twins.compare_bookkeeping();
    check(touched, b);
  }
}

TEST(DeviceWindow, EveryRowKnowsItsNextUseInTheWindow) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t num_sets : {1, 3}) {
    for_each_schedule([&] {
      const auto batches = batches_of(num_sets * 60, {20, 9, 0, 30, 20, 20, 1, 20, 15, 20, 30, 20});
      std::vector<std::set<std::uint64_t>> tags_of{{}};  // by batch
      for (const auto& batch : batches) {
        const auto tags = make_host_plan(batch).tags;
        tags_of.emplace_back(tags.begin(), tags.end());
      }
      Twins twins({num_sets, 200}, EvictionPolicy::kLookahead, 300,
                  {.depth = 5, .max_keys = 300, .num_sets = 30});
      std::int64_t known = 0;
      run(twins, batches, 4, 1, [&](std::uint32_t touched, std::uint32_t resolved) {
        const auto next_use = download(twins.view().next_use, twins.view().size.num_slots());
        for (std::size_t s = 0; s < next_use.size(); ++s) {
          if (!twins.host().ways()[s].occupied) continue;
          std::uint32_t expected = resolved + 1;
          while (expected <= touched && !tags_of[expected].contains(twins.host().ways()[s].tag)) {
            ++expected;
          }
          if (expected <= touched) {
            ASSERT_EQ(next_use[s], expected) << "slot " << s << " after batch " << resolved;
            ++known;
          } else {
            ASSERT_LE(next_use[s], resolved) << "slot " << s << " after batch " << resolved;
          }
        }
      });
      EXPECT_GT(known, 200);
    });
  }
}

TEST(DeviceWindow, WhatItForgetsDoesNotDependOnTheSchedule) {
  SATRAP_NEEDS_DEVICE();
  // Directories far too small, lines that hold a part of the keys, rows of unfinished batches.
  for (const WindowSize& size :
       {WindowSize{3, 300, 1}, WindowSize{6, 300, 3}, WindowSize{4, 10, 5}}) {
    SCOPED_TRACE(::testing::Message() << size.num_sets << " sets");
    for_each_schedule([&] {
      Twins twins({3, 200}, EvictionPolicy::kLookahead, 400, size);
      run(twins, batches_of(400, {30, 30, 40, 5, 30, 30}),
          static_cast<std::uint32_t>(size.depth - 1), 2, [](std::uint32_t, std::uint32_t) {});
    });
  }
}

TEST(DeviceWindow, BatchesThatAreGivenUpAreForgotten) {
  SATRAP_NEEDS_DEVICE();
  for_each_schedule([] {
    Twins twins({1, 4}, EvictionPolicy::kLookahead, 64,
                {.depth = 3, .max_keys = 64, .num_sets = 4});
    twins.touch(batch_of(range(0, 32)), {.batch = 1, .resolved = 0});
    twins.touch(batch_of({3}), {.batch = 2, .resolved = 0});
    twins.resolve(batch_of(range(0, 32)), {.batch = 1});
    // Batch 2 never comes: from batch 3 on, nothing is known of 3, the oldest of the unneeded rows.
    twins.touch(batch_of({40}), {.batch = 3, .resolved = 2});
    twins.resolve(batch_of({40}), {.batch = 3, .completed = 1});
    twins.touch(batch_of({3}), {.batch = 4, .resolved = 3});
    twins.compare_bookkeeping();
    twins.resolve(batch_of({3}), {.batch = 4, .completed = 3});
    twins.compare_bookkeeping();
  });
}

TEST(DeviceWindow, ABatchOutsideOfTheWindowIsRefused) {
  SATRAP_NEEDS_DEVICE();
  Twins twins({1, 4}, EvictionPolicy::kLookahead, 8, {.depth = 3, .max_keys = 8, .num_sets = 1});
  EXPECT_THROW(twins.touch(batch_of({1}), {.batch = 4, .resolved = 0}), Error);
  EXPECT_THROW(twins.touch(batch_of({1}), {.batch = 4, .resolved = 4}), Error);
  EXPECT_THROW(
      Twins({1, 4}, EvictionPolicy::kLookahead, 8, {.depth = 1, .max_keys = 0, .num_sets = 1}),
      Error);
}

}  // namespace
}  // namespace satrap::testing
