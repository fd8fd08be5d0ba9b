#include "satrap/pipeline/local_tables.h"

#include <gtest/gtest.h>

#include "satrap/core/file.h"
#include "satrap/embedding/planner.h"
#include "satrap/pipeline/stages.h"
#include "tests/embedding/random_bags.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

using Bags = std::vector<std::vector<std::vector<std::uint64_t>>>;

/// Two tables, of 4 and 8 weights, with one feature each.
class LocalTablesTest : public testing::Test {
 protected:
  static job::EmbeddingSpecs specs() {
    return {.tables = {embedding::table_spec(0, 4), embedding::table_spec(1, 8)},
            .features = {embedding::feature(0), embedding::feature(1)},
            .seed = 7};
  }

  /// Makes `store` meet these ids in `step`.
  static void meet(LocalTables& store, const Bags& bags, std::int64_t step) {
    embedding::RowAccess& access = store.access();
    embedding::Planner planner(access.layout(), access.pool());
    access.make_rows()->make_plan(planner, embedding::batch_of(bags), step);
  }

  /// Writes the rows as of the end of `step`, for another store to begin with.
  std::vector<table::RowFile> save(LocalTables& store, std::int64_t step) {
    std::vector<table::RowFile> files;
    for (const ps::SnapshotFile& file : store.take_snapshot(step)->write(directory_.path())) {
      num_rows_.push_back(file.rows);
      files.push_back({.path = directory_.path() + "/" + file.name,
                       .table = file.table,
                       .row_bytes = file.row_bytes,
                       .bytes = file.bytes,
                       .xxh3 = file.xxh3});
    }
    return files;
  }

  const TemporaryDirectory directory_;
  ThreadPool pool_{2};
  LocalTables store_{specs(), pool_};
  std::vector<std::int64_t> num_rows_;  // of each table in the last snapshot
};

TEST_F(LocalTablesTest, IsEmptyAtFirstAndGrowsByIdsThatItMeets) {
  EXPECT_EQ(store_.size().rows, 0);
  meet(store_, {{{1, 2, 2}}, {{1}}}, 1);
  EXPECT_EQ(store_.size().rows, 3);
  EXPECT_GT(store_.size().bytes, 3 * 32);
  meet(store_, {{{2, 3}}, {{}}}, 2);
  EXPECT_EQ(store_.size().rows, 4);
}

TEST_F(LocalTablesTest, ASnapshotIsAFilePerTable) {
  meet(store_, {{{1, 2, 3}}, {{}}}, 1);
  const std::vector<table::RowFile> files = save(store_, 1);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].table, 1);
  EXPECT_EQ(files[1].bytes, std::ssize(read_file(files[1].path)));
  EXPECT_EQ(files[0].row_bytes, specs().tables[0].layout().row_bytes);
}

TEST_F(LocalTablesTest, AnEmptySnapshotHasAFilePerTableToo) {
  const std::vector<table::RowFile> files = save(store_, 0);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].bytes, 0);
  EXPECT_EQ(num_rows_, (std::vector<std::int64_t>{0, 0}));
  LocalTables other(specs(), pool_);
  other.begin({.step = 0, .files = files});
  EXPECT_EQ(other.size().rows, 0);
}

TEST_F(LocalTablesTest, BeginsWithTheRowsOfASnapshot) {
  meet(store_, {{{1, 2, 3}}, {{4, 5}}}, 1);
  const StepDriver::Options options;
  StepQueue queue(1, 0);
  StageTimers timers(kNumStages);
  Work work;
  work.step = 1;
  work.batch = embedding::batch_of({{{1, 2, 3}}, {{4, 5}}});
  work.rows = store_.access().make_rows();
  {
    const std::unique_ptr<StepDriver> driver = store_.make_driver(queue, options, timers);
    driver->make_plan(work);
    ASSERT_TRUE(driver->submit(&work));
    Work* const looked_up = queue.take_looked_up(nullptr);
    looked_up->grad_pooled.resize(1, looked_up->inputs.pooled().cols);
    std::ranges::fill(looked_up->grad_pooled.values(), 1.0F);
    queue.submit_gradient(looked_up);
    driver->wait_applied(1);
  }
  LocalTables other(specs(), pool_);
  other.begin({.step = 1, .files = save(store_, 1)});
  EXPECT_EQ(num_rows_, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(other.size().rows, 5);
  const std::string written = read_file(directory_.path() + "/table-0.bin");
  save(other, 1);
  EXPECT_EQ(read_file(directory_.path() + "/table-0.bin"), written);
}

}  // namespace
}  // namespace satrap::pipeline
