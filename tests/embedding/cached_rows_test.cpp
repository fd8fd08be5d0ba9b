#include "satrap/embedding/cached_rows.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/backend/cache_size.h"
#include "satrap/core/error.h"
#include "satrap/embedding/row_groups.h"
#include "src/embedding/divide_cache.h"
#include "tests/embedding/blocking_call.h"
#include "tests/embedding/cached_training.h"
#include "tests/embedding/random_job.h"

namespace satrap::embedding {
namespace {

using backend::EvictionPolicy;
using ::testing::HasSubstr;

/// Three tables in two row groups, with many more rows than a batch needs.
std::vector<table::TableSpec> three_tables() {
  std::vector<table::TableSpec> specs = {table_spec(0, 8), table_spec(1, 8),
                                         table_spec(2, 5, RowOptimizerType::kAdam)};
  specs[0].init = {.type = table::InitType::kNormal, .scale = 0.1F};
  specs[1].optimizer.lr = 0.03F;
  specs[1].schedule.warmup_steps = 10;
  specs[2].weights = FloatType::kBf16;
  return specs;
}
std::vector<job::FeatureSpec> four_features() {
  return {feature(0), feature(1, Pooling::kMean), feature(2, Pooling::kSequence, 2), feature(0)};
}
constexpr std::uint64_t kIds = 1'000;  // of a feature, and three hot ones
constexpr std::int64_t kAllRows = 3 * (kIds + 3);

/// Of the slots of that share of all rows.
std::int64_t bytes_of_share(double share) {
  const RowLayout layout = three_tables()[0].layout();
  const auto rows = static_cast<std::int64_t>(share * static_cast<double>(kAllRows));
  return rows * (layout.device_stride + backend::CacheSize::kBookkeepingBytes);
}
std::int64_t bytes_of_least(EvictionPolicy policy) {
  const bool looks_ahead = policy == EvictionPolicy::kLookahead;
  return backend::CacheSize{1, 0}.bytes(three_tables()[0].layout()) +
         backend::CacheSize{1, 0}.bytes(three_tables()[2].layout()) +
         (looks_ahead ? 2 * backend::CacheSize::kWays * kWindowBytesPerSlot : 0);
}

data::Batch next_batch(CachedTraining& training, std::int64_t num_examples = 30) {
  return random_batch(training.random, std::ssize(training.features), num_examples, 3, kIds,
                      training.random() % 2 == 0);
}

struct CacheCase {
  const char* name;
  double share;  // of the rows; 0: one set for each group
  std::int64_t staleness, prefetch;
  EvictionPolicy policy = EvictionPolicy::kLfu;
  bool is_late = true;
  std::int64_t num_threads = 1;
  std::int64_t max_look_ahead = 0;
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
                      CacheCase{"Share5Sync", 0.05, 0, 3},
                      CacheCase{"Share5Hybrid4", 0.05, 4, 2, kLfu, true, 3},
                      CacheCase{"Share20Sync", 0.2, 0, 4, kLru},
                      CacheCase{"Share20Hybrid1", 0.2, 1, 1},
                      CacheCase{"Share20Hybrid16", 0.2, 16, 4, kLru, true, 3},
                      CacheCase{"Share100Hybrid4", 1.3, 4, 2},
                      CacheCase{"OneSetAhead", 0.0, 1, 2, kAhead, true, 1, 3},
                      CacheCase{"Share5Ahead", 0.05, 4, 2, kAhead, true, 3, 8},
                      CacheCase{"Share20Ahead", 0.2, 0, 3, kAhead, true, 1, 50}),
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
  const RowGroups groups(job.features, job.tables, kTablesSeed);
  for (const RowGroup& group : groups.groups()) {
    if (!group.features.empty()) least += backend::CacheSize{1, 0}.bytes(group.layout);
  }
  CachedTraining training(job.tables, job.features,
                          {.memory_bytes = least,
                           .policy = GetParam() % 2 == 0 ? kLfu : kLru,
                           .staleness = GetParam() % 3,
                           .prefetch = 1,
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

/// One table with one feature, and a cache of one set: 32 rows.
class CachedRowsTest : public ::testing::Test {
 protected:
  static std::vector<table::TableSpec> one_table() { return {table_spec(0, 4)}; }
  static std::int64_t one_set() { return backend::CacheSize{1, 0}.bytes(one_table()[0].layout()); }

  CachedTraining& start(CachedTraining::Options options) {
    if (options.memory_bytes == 0) options.memory_bytes = one_set();
    training = std::make_unique<CachedTraining>(one_table(), std::vector{feature(0)}, options);
    return *training;
  }

  /// One example with these ids.
  static data::Batch ids(std::vector<std::uint64_t> bag) { return batch_of({{std::move(bag)}}); }
  static data::Batch range(std::uint64_t begin, std::uint64_t end) {
    std::vector<std::uint64_t> bag;
    for (std::uint64_t id = begin; id < end; ++id) bag.push_back(id);
    return ids(std::move(bag));
  }
  static Key key(std::uint64_t id) { return make_key(TableId{0}, id); }

  void step(data::Batch batch, bool is_skipped = false) {
    training->request(std::move(batch));
    training->look_up();
    training->update(is_skipped);
  }
  std::vector<Key> fetched(std::int64_t number) const {
    return training->gate.records(StoreCall::kFetch)[static_cast<std::size_t>(number - 1)].keys;
  }
  std::string message_of(const std::function<void()>& body) const {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 public:
  std::unique_ptr<CachedTraining> training;
};

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

// ------------------------------------------------------------------------------ batches that grow

TEST_F(CachedRowsTest, BatchesMayGrowABit) {
  start({.staleness = 1, .prefetch = 2});
  std::uint64_t size = 80;
  training->train(20, [&] { return range(0, size++); }, [&] { training->save(); });
  training->expect_rows();
}

/// A planner that runs beside lookups and updates.
class PlannerBeside {
 public:
  PlannerBeside(CachedTraining& training, std::vector<data::Batch> batches)
      : training_(training), batches_(std::move(batches)) {
    for (std::int64_t i = 0; i < training.max_in_flight(); ++i) free_.push_back(take());
    thread_ = std::thread([this] {
      try {
        run();
      } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        error_ = error.what();
        changed_.notify_all();
      }
    });
  }
  ~PlannerBeside() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
      changed_.notify_all();
    }
    training_.cached->stop();
    thread_.join();
  }

  /// Looks up and updates all steps with the planner beside; the error that ended it, if any.
  std::string train() {
    const auto num_steps = std::ssize(batches_);
    while (training_.num_updated < num_steps) {
      const std::int64_t last = training_.options.staleness.last_reader(training_.num_updated);
      while (training_.num_looked_up < std::min(num_steps, last)) {
        if (!take_requested()) return error_;
        training_.look_up();
        if (::testing::Test::HasFatalFailure()) return "a lookup differs";
      }
      training_.update();
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(training_.free_rows.back()));
      training_.free_rows.pop_back();
      changed_.notify_all();
    }
    return "";
  }

 private:
  std::unique_ptr<BatchRows> take() { return training_.cached->make_rows(); }

  void run() {
    std::size_t num_shown = 0;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      std::unique_ptr<BatchRows> rows;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_stopped_ || !free_.empty(); });
        if (is_stopped_) return;
        rows = std::move(free_.back());
        free_.pop_back();
      }
      while (num_shown <= i ||
             (num_shown < batches_.size() &&
              num_shown - i <= static_cast<std::size_t>(training_.cached->look_ahead()))) {
        training_.cached->look_at(batches_[num_shown], static_cast<std::int64_t>(num_shown + 1));
        ++num_shown;
      }
      const auto step = static_cast<std::int64_t>(i + 1);
      rows->make_plan(training_.planner, batches_[i], step);
      rows->request(step);
      const std::lock_guard lock(mutex_);
      requested_.push_back(std::move(rows));
      changed_.notify_all();
    }
  }

  bool take_requested() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !requested_.empty() || !error_.empty(); });
    if (requested_.empty()) return false;
    const std::int64_t step = ++training_.num_requested;
    CachedTraining::Step& next = training_.steps[step];
    next.batch = batches_[static_cast<std::size_t>(step - 1)];
    next.rows = std::move(requested_.front());
    requested_.pop_front();
    lock.unlock();
    next.reference = training_.reference.make_rows();
    next.reference->make_plan(training_.reference_planner, next.batch, step);
    training_.num_needed +=
        std::ssize(static_cast<const PlannedRows&>(*next.reference).plan().keys);
    return true;
  }

  CachedTraining& training_;
  const std::vector<data::Batch> batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<BatchRows>> free_;
  std::deque<std::unique_ptr<BatchRows>> requested_;
  bool is_stopped_ = false;
  std::string error_;
  std::thread thread_;
};

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
  EXPECT_THAT(message_of([&] { training->read(range(0, 32)); }), HasSubstr("call 1 fails"));
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
