#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/backend/cache_twins.h"

namespace satrap::testing {
namespace {

using backend::EvictionPolicy;

constexpr backend::CacheSize kCache{8, 200};
constexpr std::uint32_t kBatches = 60;

/// Batches of 200 ids out of 1000, a few of which occur often.
std::vector<HostBatch> skewed_batches() {
  Random random(5);
  std::vector<HostBatch> batches;
  for (std::uint32_t b = 0; b < kBatches; ++b) {
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 200; ++i) {
      const float u = random.uniform(0.0F, 1.0F);
      ids.push_back(static_cast<std::uint64_t>(1000 * (u * u * u * u)));
    }
    batches.push_back(batch_of(ids));
  }
  return batches;
}

/// Misses of a policy; of kLookahead with the next uses in `ahead` batches.
std::int64_t misses_of(const std::vector<HostBatch>& batches,
                       EvictionPolicy policy,
                       std::uint32_t ahead) {
  const bool looks = policy == EvictionPolicy::kLookahead;
  Twins twins(kCache, policy, 200,
              looks ? backend::WindowSize{ahead + 1, 200, 40} : backend::WindowSize{});
  std::int64_t misses = 0;
  std::uint32_t touched = 0;
  for (std::uint32_t b = 1; b <= kBatches; ++b) {
    while (looks && touched < std::min(b + ahead, kBatches)) {
      ++touched;
      twins.touch(batches[touched - 1], {.batch = touched, .resolved = b - 1});
    }
    const auto found = twins.resolve(
        batches[b - 1], {.batch = b, .completed = b - 1, .halving_log2 = 6}, twins.rows(0, 200));
    misses += std::ssize(found.miss_keys);
  }
  return misses;
}

/// Belady: without sets, the row goes whose next use is farthest.
std::int64_t misses_of_the_optimum(const std::vector<HostBatch>& batches) {
  std::vector<std::set<std::uint64_t>> tags_of;
  for (const auto& batch : batches) {
    const auto tags = make_host_plan(batch).tags;
    tags_of.emplace_back(tags.begin(), tags.end());
  }
  std::set<std::uint64_t> resident;
  std::int64_t misses = 0;
  for (std::size_t b = 0; b < tags_of.size(); ++b) {
    for (const auto tag : tags_of[b]) misses += resident.insert(tag).second ? 1 : 0;
    std::multimap<std::size_t, std::uint64_t> by_next_use;
    for (const auto tag : resident) {
      std::size_t next = b;
      while (next < tags_of.size() && !tags_of[next].contains(tag)) ++next;
      by_next_use.emplace(next, tag);
    }
    while (std::ssize(resident) > kCache.num_slots()) {
      resident.erase(by_next_use.rbegin()->second);
      by_next_use.erase(std::prev(by_next_use.end()));
    }
  }
  return misses;
}

TEST(DeviceLookahead, AWindowOfFourCachefulsIsNearTheOptimumAndAheadOfLfu) {
  SATRAP_NEEDS_DEVICE();
  const auto batches = skewed_batches();
  std::set<Key> keys;
  std::int64_t sum = 0;
  for (const auto& batch : batches) {
    keys.insert(batch.keys.begin(), batch.keys.end());
    sum += std::ssize(make_host_plan(batch).tags);
  }
  const auto ahead = static_cast<std::uint32_t>(4 * kCache.num_slots() * kBatches / sum);
  const auto beyond_first = [&](std::int64_t misses) {
    return static_cast<double>(misses - std::ssize(keys));
  };
  const double optimum = beyond_first(misses_of_the_optimum(batches));
  const double lookahead = beyond_first(misses_of(batches, EvictionPolicy::kLookahead, ahead));
  const double lfu = beyond_first(misses_of(batches, EvictionPolicy::kLfu, 0));
  EXPECT_GT(optimum, 500);
  EXPECT_LE(lookahead, 1.15 * optimum);
  EXPECT_LE(lookahead, 0.75 * lfu);
}

}  // namespace
}  // namespace satrap::testing
