#include "satrap/embedding/cached_rows.h"

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/backend/cache_size.h"
#include "satrap/core/error.h"
#include "satrap/embedding/table_groups.h"
#include "tests/embedding/cached_rows_fixture.h"
#include "tests/embedding/random_job.h"

namespace satrap::embedding {
namespace {

using backend::EvictionPolicy;

struct CacheCase {
  const char* name;
  double share;  // of the rows; 0: one set for each group
  std::int64_t staleness, prefetch;
  EvictionPolicy policy = EvictionPolicy::kLfu;
  bool is_late = true;
  std::int64_t num_threads = 1;
  std::int64_t max_look_ahead = 0;
  bool is_registered = false;
};

class CachedRowsOfEverySize : public ::testing::TestWithParam<CacheCase> {
 protected:
  static CachedTraining::Options options() {
    const CacheCase& c = GetParam();
    return {.memory_bytes = c.share == 0.0 ? bytes_of_least(c.policy) : bytes_of_share(c.share),
            .policy = c.policy,
            .staleness = c.staleness,
            .prefetch = c.prefetch,
            .max_look_ahead = c.max_look_ahead,
            .num_threads = c.num_threads,
            .is_registered = c.is_registered,
            .is_late = c.is_late};
  }
};

constexpr EvictionPolicy kLru = EvictionPolicy::kLru, kLfu = EvictionPolicy::kLfu;
constexpr EvictionPolicy kAhead = EvictionPolicy::kLookahead;
INSTANTIATE_TEST_SUITE_P(
    Cases,
    CachedRowsOfEverySize,
    ::testing::Values(CacheCase{"OneSetSync", 0.0, 0, 0},
                      CacheCase{"OneSetSyncAhead", 0.0, 0, 3, kLru},
                      CacheCase{"OneSetHybrid1", 0.0, 1, 2},
                      CacheCase{"OneSetHybrid4", 0.0, 4, 2, kLru},
                      CacheCase{"OneSetHybrid4Prompt", 0.0, 4, 2, kLru, false},
                      CacheCase{"OneSetRegistered", 0.0, 1, 2, kLfu, true, 1, 0, true},
                      CacheCase{"Share5Sync", 0.05, 0, 3},
                      CacheCase{"Share5Hybrid4", 0.05, 4, 2, kLfu, true, 3},
                      CacheCase{"Share20Sync", 0.2, 0, 4, kLru},
                      CacheCase{"Share20Hybrid1", 0.2, 1, 1},
                      CacheCase{"Share20Hybrid16", 0.2, 16, 4, kLru, true, 3},
                      CacheCase{"Share100Hybrid4", 1.3, 4, 2},
                      CacheCase{"OneSetAhead", 0.0, 1, 2, kAhead, true, 1, 3},
                      CacheCase{"Share5Ahead", 0.05, 4, 2, kAhead, true, 3, 8},
                      CacheCase{"Share20Ahead", 0.2, 0, 3, kAhead, true, 1, 50},
                      CacheCase{"Share5Registered", 0.05, 4, 2, kAhead, false, 3, 8, true}),
    [](const ::testing::TestParamInfo<CacheCase>& c) { return std::string(c.param.name); });

/// With steps that are skipped, and saves and reads between steps.
TEST_P(CachedRowsOfEverySize, TrainAsInTheirTablesBitForBit) {
  CachedTraining training(three_tables(), four_features(), options());
  training.train(
      60, [&] { return next_batch(training); },
      [&] {
        if (training.random() % 4 == 0) training.save();
        if (training.random() % 8 == 0) training.read(next_batch(training));
      });
  training.expect_rows();
  const CacheCounts counts = training.cached->counts();
  EXPECT_EQ(counts.hits + counts.misses, training.num_needed);
  EXPECT_GT(counts.hits, 0);
  EXPECT_GT(counts.rows_written, 0);
  if (GetParam().share > 1.0) {
    EXPECT_LE(counts.misses, kAllRows);
  }
}

class CachedRowsOfRandomJobs : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Jobs, CachedRowsOfRandomJobs, ::testing::Range(0, kNumRandomJobs));

/// Tables of every optimizer, type of weights and width, each group with as little memory as it can
/// have. One batch is empty, and one has a key that occurs thousands of times.
TEST_P(CachedRowsOfRandomJobs, TrainAsInTheirTablesBitForBit) {
  const RandomJob job = random_job(GetParam());
  std::int64_t least = 0;
  const TableGroups groups(job.features, job.tables, kTablesSeed);
  for (const TableGroup& group : groups.groups()) {
    if (!group.features.empty()) least += backend::CacheSize{1, 0}.bytes(group.layout);
  }
  CachedTraining training(job.tables, job.features,
                          {.memory_bytes = least,
                           .policy = GetParam() % 2 == 0 ? kLfu : kLru,
                           .staleness = GetParam() % 3,
                           .prefetch = 1,
                           .is_registered = GetParam() % 2 == 1,
                           .is_late = true});
  std::size_t at = 1;  // the largest first, for which the cache is made
  training.train(
      9, [&] { return job.batches[at++ % job.batches.size()]; },
      [&] {
        if (training.num_updated % 2 == 0) training.save();
      });
  training.expect_rows();
}

// ------------------------------------------------------------------------- single keys and steps

TEST_F(CachedRowsTest, EveryRowIsEvictedEveryStep) {
  start({.policy = kLru});
  for (std::uint64_t n = 1; n <= 20; ++n) step(range(n % 3 * 32, n % 3 * 32 + 32));
  const CacheCounts counts = training->cached->counts();
  EXPECT_EQ(counts.hits, 0);
  EXPECT_EQ(counts.misses, 20 * 32);
  training->expect_rows();
}

TEST_F(CachedRowsTest, ACacheThatHoldsAllRowsFetchesEachOnceAndWritesNoneBeforeAFlush) {
  start({.memory_bytes = 64 * one_set()});
  for (std::uint64_t n = 1; n <= 10; ++n) step(range(0, 40));
  EXPECT_EQ(training->gate.num_calls(StoreCall::kFetch), 1);
  EXPECT_EQ(training->gate.num_calls(StoreCall::kPut), 0);
  EXPECT_EQ(training->cached->counts().misses, 40);
  EXPECT_EQ(training->cached->counts().hits, 9 * 40);
  training->expect_rows();
  EXPECT_EQ(training->cached->counts().rows_written, 40);
  training->cached->flush();
  EXPECT_EQ(training->cached->counts().rows_written, 40);  // nothing has changed since
}

TEST_F(CachedRowsTest, ItLooksAheadOnceItIsFullAndABatchMissesManyRows) {
  constexpr std::int64_t kSets = 8;
  start({.memory_bytes = kSets * (one_set() + backend::CacheSize::kWays * kWindowBytesPerSlot),
         .policy = backend::EvictionPolicy::kLookahead,
         .max_look_ahead = 4});
  const auto look_ahead = [&] { return training->cached->look_ahead(); };
  for (std::uint64_t id = 0; id < 160; id += 10) step(range(id, id + 10));  // of 256 slots
  EXPECT_EQ(look_ahead(), 0);
  for (std::uint64_t id = 160; id < 400; ++id) step(range(id - 20, id + 1));  // one is missing
  EXPECT_GE(training->cached->counts().misses, 400);
  EXPECT_EQ(look_ahead(), 0);
  training->cached->flush();  // what leaves now has not changed
  step(range(1'000, 1'050));
  EXPECT_GT(look_ahead(), 0);
}

TEST_F(CachedRowsTest, AFlushWritesWhatHasChangedSinceTheLast) {
  start({.memory_bytes = 64 * one_set()});
  step(range(0, 40));
  training->cached->flush();
  step(range(30, 50));
  training->cached->flush();
  EXPECT_EQ(training->cached->counts().rows_written, 40 + 20);
  training->expect_rows();
}

TEST_F(CachedRowsTest, ARowThatIsOnItsWayToTheStoreComesFromThere) {
  start({.policy = kLru});
  step(range(0, 32));
  training->gate.close(StoreCall::kPut);
  step(range(100, 132));  // evicts all of them
  training->gate.wait_for_waiting(StoreCall::kPut, 1);
  const std::int64_t fetches = training->gate.num_calls(StoreCall::kFetch);
  step(range(0, 32));  // while their put is under way
  EXPECT_EQ(training->gate.num_calls(StoreCall::kFetch), fetches);
  step(range(200, 232));
  step(range(90, 122));  // a part is on its way
  EXPECT_EQ(fetched(fetches + 2).size(), 10U);
  training->expect_rows();
}

TEST_F(CachedRowsTest, ARowIsEvictedTwiceBeforeTheStoreHasItOnce) {
  start({.policy = kLru});
  training->gate.close(StoreCall::kPut);
  for (std::uint64_t n = 0; n < 9; ++n) step(range(n % 3 * 100, n % 3 * 100 + 32));
  training->gate.wait_for_waiting(StoreCall::kPut, 1);
  EXPECT_EQ(training->gate.num_calls(StoreCall::kPut), 1);
  EXPECT_EQ(training->gate.num_calls(StoreCall::kFetch), 3);
  training->expect_rows();
}

TEST_F(CachedRowsTest, RowsThatAreOnlyReadAreNotWritten) {
  start({.policy = kLru});
  for (std::uint64_t n = 1; n <= 5; ++n) step(range(100 * n, 100 * n + 32), true);
  training->cached->flush();
  EXPECT_EQ(training->cached->counts().rows_written, 0);
  training->expect_rows();
}

TEST_F(CachedRowsTest, ABatchLargerThanTheCacheUsesOverflowRows) {
  start({});
  for (std::uint64_t n = 1; n <= 6; ++n) {
    step(range(0, 100 + n));
    training->save();
  }
  const CacheCounts counts = training->cached->counts();
  EXPECT_EQ(counts.hits + counts.misses, training->num_needed);
  training->expect_rows();
}

/// The set is full of rows that the batches in flight need, so the others are beside it.
TEST_F(CachedRowsTest, BatchesInFlightShareAnOverflowRow) {
  start({.staleness = 2, .prefetch = 1});
  training->train(12, [&] { return range(0, 80); }, [&] { training->save(); });
  EXPECT_EQ(training->cached->counts().misses, 80);  // its batches overlap from first to last
  training->expect_rows();
}

TEST_F(CachedRowsTest, AnOverflowRowIsSavedWhileLaterBatchesStillNeedIt) {
  start({.staleness = 3, .prefetch = 1, .is_late = true});
  std::uint64_t n = 0;
  training->train(30, [&] { return range(n++ % 5 * 10, 90); }, [&] { training->save(); });
  training->expect_rows();
}

TEST_F(CachedRowsTest, AStepThatIsNotFiniteChangesNoRow) {
  start({});
  step(range(0, 60));
  step(range(10, 80), true);
  training->save();
  step(range(0, 60));
  step(range(200, 270), true);
  training->save();
  step(range(10, 80));
  training->expect_rows();
}

/// As when a run goes on from a checkpoint.
TEST_F(CachedRowsTest, TheFirstStepMayHaveAnyNumber) {
  start({.staleness = 1, .prefetch = 1});
  CachedTraining& t = *training;
  t.num_requested = t.num_looked_up = t.num_updated = 1'000'000;
  t.train(10, [&] { return range(t.random() % 50, 100); }, [&] { t.save(); });
  t.expect_rows();
}

TEST_F(CachedRowsTest, SavingBeforeTheFirstBatchCallsTheAction) {
  start({});
  training->cached->flush();
  std::promise<void> called;
  training->cached->save([&] { called.set_value(); });
  EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  training->read(range(0, 40));
}

}  // namespace
}  // namespace satrap::embedding
