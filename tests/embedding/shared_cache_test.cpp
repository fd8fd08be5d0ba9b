#include "satrap/embedding/shared_cache.h"

#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/backend/cache_size.h"
#include "satrap/core/error.h"
#include "tests/embedding/blocking_call.h"
#include "tests/embedding/random_bags.h"

namespace satrap::embedding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kOnItsWay = SharedBatch::kOnItsWay, kNoCopy = SharedBatch::kNoCopy;
constexpr std::int64_t kKept = -1;  // the answer for a copy that stays as it is

/// One table, one feature, and a cache of one set of 32 rows; overflow rows for two batches of the
/// size of the first one.
class SharedCacheTest : public ::testing::Test {
 protected:
  SharedCacheTest() { start(2); }

  void start(const table::StalenessBound& staleness) {
    const std::int64_t bytes =
        backend::CacheSize{1, 0}.bytes(RowLayout::of(4, FloatType::kFp32, RowOptimizerType::kSgd));
    const std::vector<table::TableSpec> tables = {table_spec(0, 4)};
    const std::vector<job::FeatureSpec> features = {feature(0)};
    cache_ = std::make_unique<SharedCache>(
        features, tables, *device_, pool_,
        SharedCache::Options{.memory_bytes = bytes, .max_in_flight = 2, .staleness = staleness});
  }

  /// A batch of one example with these ids.
  static data::Batch ids(std::uint64_t first, std::uint64_t count) {
    std::vector<std::uint64_t> bag;
    for (std::uint64_t id = first; id < first + count; ++id) bag.push_back(id);
    return batch_of({{bag}});
  }

  std::unique_ptr<SharedBatch> planned(const data::Batch& batch, std::int64_t step) {
    std::unique_ptr<SharedBatch> rows = cache_->make_batch();
    rows->make_plan(batch, step);
    return rows;
  }
  std::unique_ptr<SharedBatch> resolved(const data::Batch& batch, std::int64_t step) {
    std::unique_ptr<SharedBatch> rows = planned(batch, step);
    rows->resolve();
    return rows;
  }

  /// By id, what a batch says of its copies.
  static std::map<std::uint64_t, std::int64_t> versions_of(const SharedBatch& rows) {
    std::map<std::uint64_t, std::int64_t> versions;
    for (std::size_t u = 0; u < rows.keys().size(); ++u) {
      versions[id_of(rows.keys()[u])] = rows.versions()[u];
    }
    return versions;
  }

  /// Weights of a row of E_version.
  static std::vector<float> weights(Key key, std::int64_t version) {
    const auto value = static_cast<float>(100 * id_of(key)) + static_cast<float>(version);
    return {value, value + 0.25F, value + 0.5F, value + 0.75F};
  }

  /// All rows of E_version come.
  static std::int64_t take_all(SharedBatch& rows, std::int64_t version) {
    std::vector<std::vector<float>> values;
    std::vector<const float*> pointers;
    for (const Key key : rows.keys()) values.push_back(weights(key, version));
    for (const auto& value : values) pointers.push_back(value.data());
    return rows.take(pointers, std::vector<std::int64_t>(pointers.size(), version));
  }
  /// None comes.
  static std::int64_t take_none(SharedBatch& rows, std::int64_t version = kKept) {
    const std::size_t size = rows.keys().size();
    return rows.take(std::vector<const float*>(size), std::vector<std::int64_t>(size, version));
  }

  std::vector<float> pool(const SharedBatch& rows, const data::Batch& batch) const {
    std::vector<float> pooled(4 * static_cast<std::size_t>(batch.num_examples)), mask;
    rows.pool(batch, host_matrix(std::span(pooled), batch.num_examples, 4),
              host_matrix(std::span(mask), batch.num_examples, 0));
    return pooled;
  }

  ThreadPool pool_{2};
  const std::unique_ptr<backend::Device> device_ = backend::make_host_device(&pool_);
  std::unique_ptr<SharedCache> cache_;
};

TEST_F(SharedCacheTest, ARowIsAskedForOnceAndHasItsVersionOnceItHasCome) {
  const auto first = resolved(ids(1, 2), 1);
  EXPECT_EQ(versions_of(*first),
            (std::map<std::uint64_t, std::int64_t>{{1, kNoCopy}, {2, kNoCopy}}));
  const auto second = resolved(ids(2, 2), 2);
  EXPECT_EQ(versions_of(*second),
            (std::map<std::uint64_t, std::int64_t>{{2, kOnItsWay}, {3, kNoCopy}}));
  EXPECT_EQ(take_all(*first, 0), 0);
  EXPECT_EQ(pool(*first, ids(1, 2))[0], 300.0F);
  EXPECT_EQ(take_all(*second, 1), 1);
  const auto third = resolved(ids(1, 3), 3);
  EXPECT_EQ(versions_of(*third), (std::map<std::uint64_t, std::int64_t>{{1, 0}, {2, 1}, {3, 1}}));
  EXPECT_EQ(take_none(*third), 0);
  EXPECT_EQ(pool(*third, ids(1, 3))[0], 602.0F);  // id 1 of E_0, the others of E_1
  const CacheCounts counts = cache_->counts();
  EXPECT_EQ(counts.hits, 3);
  EXPECT_EQ(counts.misses, 4);
}

TEST_F(SharedCacheTest, AnUnchangedCopyIsOfTheVersionThatWasReadAndNeverOfAnOlderOne) {
  const auto first = resolved(ids(1, 1), 1);
  take_all(*first, 0);
  const auto second = resolved(ids(1, 1), 4);
  EXPECT_EQ(take_none(*second, 2), 2);
  const auto third = resolved(ids(1, 1), 5);
  EXPECT_THAT(third->versions(), ElementsAre(2));
  EXPECT_EQ(take_none(*third, 1), 2);
}

TEST_F(SharedCacheTest, ACopyOlderThanTheBoundIsAnError) {
  const auto first = resolved(ids(7, 1), 1);
  take_all(*first, 0);
  EXPECT_EQ(take_none(*resolved(ids(7, 1), 3)), 0);  // the bound is 2
  const auto late = resolved(ids(7, 1), 4);
  try {
    take_none(*late);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.what(),
                HasSubstr("step 4 would read the copy of id 7 of table 0 as of E_0; the "
                          "bound allows E_1 or a later one"));
  }
}

TEST_F(SharedCacheTest, ARowThatHasNeverComeIsAnError) {
  const auto first = resolved(ids(7, 1), 1);
  EXPECT_THROW(take_none(*first), Error);
}

TEST_F(SharedCacheTest, RowsOfABatchStayUntilItIsPooled) {
  const auto first = resolved(ids(0, 40), 1), second = resolved(ids(100, 40), 2);
  const auto third = planned(ids(200, 60), 3);
  std::future<std::string> resolving = message_of_blocking([&] { third->resolve(); });
  take_all(*first, 0);
  EXPECT_TRUE(blocks(resolving));
  EXPECT_EQ(pool(*first, ids(0, 40))[0], 100.0F * 39 * 20);
  EXPECT_EQ(take_all(*second, 0), 0);
  EXPECT_EQ(pool(*second, ids(100, 40))[0], 100.0F * (100 * 40 + 39 * 20));
  EXPECT_EQ(result_of(resolving), "");
  EXPECT_EQ(take_all(*third, 1), 1);
  EXPECT_EQ(pool(*third, ids(200, 60))[0], 100.0F * (200 * 60 + 59 * 30) + 60.0F);
}

TEST_F(SharedCacheTest, ABatchWhoseRowsDoNotFitIsAnError) {
  const auto first = resolved(ids(0, 4), 1);
  take_all(*first, 0);
  pool(*first, ids(0, 4));
  const auto second = planned(ids(0, 100), 2);
  std::future<std::string> resolving = message_of_blocking([&] { second->resolve(); });
  EXPECT_THAT(result_of(resolving),
              HasSubstr("embedding.cache.memory: the rows that step 2 needs"));
}

TEST_F(SharedCacheTest, StoppingEndsTheWaitForRoom) {
  const auto first = resolved(ids(0, 40), 1), second = resolved(ids(100, 40), 2);
  const auto third = planned(ids(200, 60), 3);
  std::future<std::string> resolving = message_of_blocking([&] { third->resolve(); });
  EXPECT_TRUE(blocks(resolving));
  cache_->stop();
  EXPECT_EQ(result_of(resolving), "the cache of rows was stopped");
}

TEST_F(SharedCacheTest, GradientsAreSummedByKeyWithoutPadding) {
  const data::Batch batch = batch_of({{{5, 6}, {6}}});
  const auto rows = resolved(batch, 1);
  take_all(*rows, 0);
  const std::vector<float> gradient = {1, 2, 3, 4, 10, 20, 30, 40};
  std::vector<float> sums(8, -1.0F);
  std::vector<float*> to;
  for (std::size_t u = 0; u < 2; ++u) to.push_back(sums.data() + 4 * u);
  rows->sum_gradients(gradient.data(), to);
  const bool five_first = id_of(rows->keys()[0]) == 5;
  const std::size_t five = five_first ? 0 : 4;
  EXPECT_EQ(std::vector<float>(sums.begin() + static_cast<std::ptrdiff_t>(five),
                               sums.begin() + static_cast<std::ptrdiff_t>(five) + 4),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(std::vector<float>(sums.begin() + static_cast<std::ptrdiff_t>(4 - five),
                               sums.begin() + static_cast<std::ptrdiff_t>(4 - five) + 4),
            (std::vector<float>{11, 22, 33, 44}));
}

}  // namespace
}  // namespace satrap::embedding
