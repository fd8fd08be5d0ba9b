// Batches that grow, waits for room and for the store, errors, stops and threads.

#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/embedding/cached_rows.h"
#include "tests/embedding/blocking_call.h"
#include "tests/embedding/cached_rows_fixture.h"
#include "tests/embedding/planner_beside.h"

namespace satrap::embedding {
namespace {

using ::testing::HasSubstr;

TEST_F(CachedRowsTest, BatchesMayGrowABit) {
  start({.staleness = 1, .prefetch = 2});
  std::uint64_t size = 80;
  training->train(20, [&] { return range(0, size++); }, [&] { training->save(); });
  training->expect_rows();
}

/// The planner waits for room until earlier batches are done. A row counts once all the same.
class CachedRowsThatWait : public CachedRowsTest {
 protected:
  /// Trains on a batch of 60 keys, which decides the size, and then on batches of `num_keys`.
  void train_beside_a_planner(const CachedTraining::Options& options, std::uint64_t num_keys) {
    start(options);
    std::vector<data::Batch> batches = {range(0, 60)};
    for (std::uint64_t n = 1; n < 30; ++n) batches.push_back(range(1000 * n, 1000 * n + num_keys));
    PlannerBeside planner(*training, std::move(batches));
    EXPECT_EQ(planner.train(), "");
    const CacheCounts counts = training->cached->counts();
    EXPECT_EQ(counts.hits + counts.misses, training->num_needed);
    training->gate.open_all();
    training->cached->flush();
    EXPECT_EQ(differences(training->home.updated_rows(), training->in_place.updated_rows()), "");
  }
};

TEST_F(CachedRowsThatWait, BatchesThatDoNotFitTogetherWaitForEachOther) {
  train_beside_a_planner({.staleness = 1, .prefetch = 3}, 190);
}

/// What counts is how long an update may have to wait now, not later.
TEST_F(CachedRowsThatWait, ABoundThatGrowsStartsAtItsBeginning) {
  train_beside_a_planner({.staleness = {4, 0.125}, .prefetch = 3}, 500);
}

TEST_F(CachedRowsTest, ABatchThatCannotFitIsAnErrorWithTheArithmetic) {
  start({.prefetch = 1});
  PlannerBeside planner(*training, {range(0, 40), range(1000, 5000)});
  const std::string message = planner.train();
  EXPECT_THAT(message, HasSubstr("embedding.cache.memory: "));
  EXPECT_THAT(message, HasSubstr("step 2"));
  EXPECT_THAT(message, HasSubstr("32 rows of dim 4"));
  EXPECT_THAT(message, HasSubstr("use a larger cache"));
}

/// A feature may be empty at first.
TEST_F(CachedRowsTest, AnEmptyFirstBatchDoesNotDecideTheSize) {
  start({.memory_bytes = 100 * one_set()});
  step(ids({}));
  EXPECT_GT(training->cached->counts().bytes, 90 * one_set());
  for (std::uint64_t n = 1; n <= 5; ++n) step(range(0, 1'000));
  training->expect_rows();
}

TEST_F(CachedRowsTest, MemoryOfLessThanASetIsRefusedWithTheFirstBatch) {
  start({.memory_bytes = one_set() - 1});
  EXPECT_THAT(message_of([&] { training->request(range(0, 10)); }),
              HasSubstr("embedding.cache.memory: "));
}

// --------------------------------------------------------------------------------- errors, stops

TEST_F(CachedRowsTest, TheErrorOfAFetchComesOutOfTheWait) {
  start({});
  step(range(0, 10));
  training->gate.fail(StoreCall::kFetch, 2);
  training->request(range(100, 110));
  EXPECT_THAT(message_of([&] { training->look_up(); }), HasSubstr("call 2 fails"));
}

TEST_F(CachedRowsTest, TheErrorOfAPutComesOutOfTheNextRequestSaveOrFlush) {
  start({.policy = kLru});
  training->gate.fail(StoreCall::kPut, 1);
  step(range(0, 32));
  step(range(100, 132));  // evicts
  training->gate.wait_for_ended(StoreCall::kPut, 1);
  EXPECT_THAT(message_of([&] { training->cached->flush(); }), HasSubstr("call 1 fails"));
  EXPECT_THAT(message_of([&] { training->request(range(200, 232)); }), HasSubstr("call 1 fails"));
}

/// Whoever waits for the snapshot must not wait for ever.
TEST_F(CachedRowsTest, ASaveThatAnErrorPreventsDestroysItsAction) {
  start({});
  step(range(0, 32));
  training->gate.fail(StoreCall::kPut, 1);
  auto taken = std::make_shared<std::promise<void>>();
  std::future<void> never = taken->get_future();
  training->cached->save([taken = std::move(taken)] { taken->set_value(); });
  ASSERT_EQ(never.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_THROW(never.get(), std::future_error);
}

TEST_F(CachedRowsTest, StoppingEndsTheWaitForRows) {
  start({});
  training->gate.close(StoreCall::kFetch);
  training->request(range(0, 32));
  std::future<std::string> waiting =
      message_of_blocking([&] { training->steps.at(1).rows->wait(); });
  EXPECT_TRUE(blocks(waiting));
  training->cached->stop();
  EXPECT_THAT(result_of(waiting), HasSubstr("stopped"));
  training->gate.open_all();
}

TEST_F(CachedRowsTest, StoppingEndsTheWaitForRoom) {
  start({.prefetch = 2});
  step(range(0, 40));
  training->request(range(100, 300));
  std::future<std::string> waiting =
      message_of_blocking([&] { training->request(range(1000, 1240)); });
  EXPECT_TRUE(blocks(waiting));
  training->cached->stop();
  EXPECT_THAT(result_of(waiting), HasSubstr("the cache of rows was stopped"));
}

TEST_F(CachedRowsTest, StoppingEndsAFlush) {
  start({});
  step(range(0, 32));
  training->gate.close(StoreCall::kPut);
  std::future<std::string> flushing = message_of_blocking([&] { training->cached->flush(); });
  training->gate.wait_for_waiting(StoreCall::kPut, 1);
  training->cached->stop();
  EXPECT_THAT(result_of(flushing), HasSubstr("stopped"));
  training->gate.open_all();
}

/// As at the end of a run that is stopped in the middle of its prefetch.
TEST_F(CachedRowsTest, ItIsDestroyedWithBatchesInFlight) {
  start({.staleness = 1, .prefetch = 3});
  step(range(0, 60));
  training->gate.close(StoreCall::kFetch);
  training->gate.close(StoreCall::kPut);
  for (std::uint64_t n = 1; n <= 3; ++n) training->request(range(100 * n, 100 * n + 60));
  training.reset();  // opens the gates first
}

// ---------------------------------------------------------------------------------------- threads

/// For the thread sanitizer, too: planner, fetches, write-back, saves and updates at the same time.
TEST(CachedRowsThreads, APlannerMayRunBesideLookupsAndUpdates) {
  for (const double share : {0.05, 0.2}) {
    CachedTraining training(
        three_tables(), four_features(),
        {.memory_bytes = bytes_of_share(share), .staleness = 2, .prefetch = 3, .num_threads = 3});
    std::vector<data::Batch> batches;
    for (int n = 0; n < 40; ++n) batches.push_back(next_batch(training, 20 + n));
    PlannerBeside planner(training, std::move(batches));
    EXPECT_EQ(planner.train(), "");
    training.save();
    training.expect_rows();
    const CacheCounts counts = training.cached->counts();
    EXPECT_EQ(counts.hits + counts.misses, training.num_needed);
  }
}

}  // namespace
}  // namespace satrap::embedding
