#include "satrap/pipeline/cached_tables.h"

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/backend/cache_size.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/pipeline/local_tables.h"
#include "satrap/pipeline/stages.h"
#include "tests/embedding/blocking_call.h"
#include "tests/embedding/gated_row_store.h"
#include "tests/embedding/random_bags.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

using embedding::GatedRowStore;
using embedding::StoreCall;

/// One table in this process, with a cache of 32 rows before it or without.
class CachedTablesTest : public testing::Test {
 protected:
  static job::EmbeddingSpecs specs() {
    return {
        .tables = {embedding::table_spec(0, 4)}, .features = {embedding::feature(0)}, .seed = 7};
  }
  static std::int64_t cache_bytes() {
    return backend::CacheSize{1, 0}.bytes(specs().tables[0].layout());
  }

  CachedTablesTest() {
    auto local = std::make_unique<LocalTables>(specs(), pool_);
    gate_ = std::make_unique<GatedRowStore>(local->row_store());
    cached_ = std::make_unique<CachedTables>(
        specs(), std::move(local), *gate_,
        embedding::CachedRows::Options{.memory_bytes = cache_bytes(), .max_in_flight = 4}, *device_,
        pool_, cluster_);
  }
  ~CachedTablesTest() override { gate_->open_all(); }

  /// Trains one step after the other on these ids.
  class Training {
   public:
    Training(EmbeddingTables& tables, std::int64_t first_step)
        : access_(tables.access()),
          step_(first_step),
          queue_(first_step, 0),
          driver_(tables.make_driver(queue_, {.first_step = first_step}, timers_)) {
      work_.rows = access_.make_rows();
    }

    void step(std::uint64_t first_id, std::uint64_t num_ids) {
      std::vector<std::uint64_t> bag;
      for (std::uint64_t id = 0; id < num_ids; ++id) bag.push_back(first_id + id);
      work_.step = step_;
      work_.batch = embedding::batch_of({{bag}});
      driver_->make_plan(work_);
      ASSERT_TRUE(driver_->submit(&work_));
      Work* const work = queue_.take_looked_up(nullptr);
      work->grad_pooled.resize(1, work->inputs.pooled().cols);
      work->grad_pooled.values() = work->inputs.pooled_values();
      queue_.submit_gradient(work);
      queue_.finish(work);
      driver_->wait_applied(step_++);
      queue_.take_free();
    }
    void stop() { driver_->stop(); }

   private:
    embedding::RowAccess& access_;
    StageTimers timers_{kNumStages};
    std::int64_t step_;
    Work work_;
    StepQueue queue_;
    std::unique_ptr<StepDriver> driver_;
  };

  /// The content of a snapshot's only file.
  std::string content(RowsSnapshot& snapshot) {
    const TemporaryDirectory directory;
    const std::vector<ps::SnapshotFile> files = snapshot.write(directory.path());
    EXPECT_EQ(files.size(), 1U);
    return read_file(directory.path() + "/" + files[0].name);
  }

  /// Of tables without a cache after the same steps.
  std::string content_after(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& steps) {
    LocalTables tables(specs(), pool_);
    {
      Training training(tables, 1);
      for (const auto& [first_id, num_ids] : steps) training.step(first_id, num_ids);
    }
    return sorted(content(*tables.take_snapshot(std::ssize(steps))));
  }

  /// Rows in the order of their bytes: tables write them in the order in which they came.
  static std::string sorted(const std::string& content) {
    const auto row_bytes = static_cast<std::size_t>(specs().tables[0].layout().row_bytes);
    std::vector<std::string> rows;
    for (std::size_t at = 0; at < content.size(); at += row_bytes) {
      rows.push_back(content.substr(at, row_bytes));
    }
    std::ranges::sort(rows);
    std::string text;
    for (const std::string& row : rows) text += row;
    return text;
  }

  ThreadPool pool_{2};
  const std::unique_ptr<backend::Device> device_ = backend::make_host_device(&pool_);
  const job::JobConfig job_;
  Cluster cluster_{job_, {}};
  std::unique_ptr<GatedRowStore> gate_;
  std::unique_ptr<CachedTables> cached_;
};

TEST_F(CachedTablesTest, ASnapshotHasTheRowsOfItsStepWhateverIsTrainedAndPutMeanwhile) {
  Training training(*cached_, 1);
  training.step(0, 60);
  training.step(40, 50);
  gate_->close(StoreCall::kPut);
  const std::unique_ptr<RowsSnapshot> second = cached_->take_snapshot(2);
  training.step(0, 60);
  training.step(100, 40);
  gate_->open(StoreCall::kPut);
  EXPECT_EQ(sorted(content(*second)), content_after({{0, 60}, {40, 50}}));
  const std::unique_ptr<RowsSnapshot> fourth = cached_->take_snapshot(4);
  training.step(0, 60);
  EXPECT_EQ(sorted(content(*fourth)), content_after({{0, 60}, {40, 50}, {0, 60}, {100, 40}}));
}

TEST_F(CachedTablesTest, ASnapshotOfNothingIsEmpty) {
  EXPECT_EQ(content(*cached_->take_snapshot(0)), "");
}

TEST_F(CachedTablesTest, ASnapshotWhoseRowsDoNotGetIntoTheirTablesIsAnError) {
  Training training(*cached_, 1);
  training.step(0, 20);
  gate_->fail(StoreCall::kPut, 1);
  const std::unique_ptr<RowsSnapshot> snapshot = cached_->take_snapshot(1);
  std::future<std::string> writing = embedding::message_of_blocking([&] { content(*snapshot); });
  EXPECT_THAT(embedding::result_of(writing), testing::HasSubstr("call 1 fails"));
}

/// As a trainer that fails: it joins the writer of its checkpoint before its tables are destroyed.
TEST_F(CachedTablesTest, ASnapshotThatIsWrittenWhenTheDriverStopsIsAnError) {
  Training training(*cached_, 1);
  training.step(0, 20);
  gate_->close(StoreCall::kPut);
  const std::unique_ptr<RowsSnapshot> snapshot = cached_->take_snapshot(1);
  std::future<std::string> writing = embedding::message_of_blocking([&] { content(*snapshot); });
  EXPECT_TRUE(embedding::blocks(writing));
  training.stop();
  EXPECT_EQ(embedding::result_of(writing), "the rows of the cache did not get into their tables");
}

TEST_F(CachedTablesTest, TheirSizeIncludesTheCache) {
  const std::int64_t before = cached_->size().bytes;
  EXPECT_EQ(cached_->cache()->bytes, 0);
  Training training(*cached_, 1);
  training.step(0, 20);
  EXPECT_EQ(cached_->size().rows, 20);
  EXPECT_GE(cached_->cache()->bytes, cache_bytes());
  EXPECT_GE(cached_->size().bytes - before, cached_->cache()->bytes);
}

TEST_F(CachedTablesTest, ItsCountsTellWhatTheCacheHasDone) {
  Training training(*cached_, 1);
  training.step(0, 20);
  training.step(0, 30);
  cached_->take_snapshot(2)->write(TemporaryDirectory().path());
  const embedding::CacheCounts counts = *cached_->cache();
  const std::int64_t row_bytes = specs().tables[0].layout().row_bytes;
  EXPECT_EQ(counts.hits, 20);
  EXPECT_EQ(counts.misses, 30);
  EXPECT_EQ(counts.bytes_fetched, 30 * row_bytes);
  EXPECT_EQ(counts.rows_written, 30);
  EXPECT_EQ(counts.bytes_written, 30 * row_bytes);
}

TEST_F(CachedTablesTest, BeginWithTheRowsOfASnapshot) {
  const TemporaryDirectory directory;
  std::vector<ps::SnapshotFile> written;
  {
    LocalTables tables(specs(), pool_);
    Training training(tables, 1);
    training.step(0, 60);
    written = tables.take_snapshot(1)->write(directory.path());
  }
  cached_->begin({.step = 1,
                  .files = {{.path = directory.path() + "/" + written[0].name,
                             .table = 0,
                             .row_bytes = written[0].row_bytes,
                             .bytes = written[0].bytes,
                             .xxh3 = written[0].xxh3}}});
  EXPECT_EQ(cached_->size().rows, 60);
  Training training(*cached_, 2);
  training.step(30, 60);
  EXPECT_EQ(sorted(content(*cached_->take_snapshot(2))), content_after({{0, 60}, {30, 60}}));
}

}  // namespace
}  // namespace satrap::pipeline
