#include "src/embedding/row_fetcher.h"

#include <array>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/embedding/blocking_call.h"
#include "tests/embedding/gated_row_store.h"

namespace satrap::embedding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RowFetcherTest : public ::testing::Test {
 protected:
  ~RowFetcherTest() override { gate.open_all(); }

  /// Asks for the rows of these ids, ascending.
  void start(std::int64_t step, const std::vector<std::uint64_t>& ids) {
    Batch& batch = batches[step];
    for (const std::uint64_t id : ids) batch.keys.push_back(make_key(TableId{0}, id));
    std::ranges::sort(batch.keys);
    batch.memory.resize(ids.size() * SmallRowStore::kRowBytes);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      batch.rows.push_back(batch.memory.data() + i * SmallRowStore::kRowBytes);
    }
    fetcher->start({.step = step, .keys = batch.keys, .rows = batch.rows, .arrive = [this, step] {
                      const std::lock_guard lock(mutex);
                      arrived.push_back(step);
                    }});
  }
  std::future<std::string> wait(std::int64_t step) {
    return message_of_blocking([this, step] { fetcher->wait(step); });
  }
  std::future<std::string> forget(std::int64_t step) {
    return message_of_blocking([this, step] { fetcher->forget(step); });
  }
  std::vector<std::int64_t> all_arrived() {
    const std::lock_guard lock(mutex);
    return arrived;
  }
  bool has_rows(std::int64_t step) {
    const Batch& batch = batches[step];
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      if (std::memcmp(batch.rows[i], &batch.keys[i], sizeof(Key)) != 0) return false;
    }
    return true;
  }

 public:
  SmallRowStore store;
  GatedRowStore gate{store};
  struct Batch {
    std::vector<Key> keys;
    std::vector<std::byte> memory;
    std::vector<std::byte*> rows;
  };
  std::map<std::int64_t, Batch> batches;
  std::mutex mutex;
  std::vector<std::int64_t> arrived;
  std::unique_ptr<RowFetcher> fetcher = std::make_unique<RowFetcher>(gate, 3);
};

TEST_F(RowFetcherTest, RowsAreThereAfterTheWait) {
  start(1, {4, 9, 2});
  fetcher->wait(1);
  EXPECT_TRUE(has_rows(1));
  EXPECT_THAT(all_arrived(), ElementsAre(1));
}

TEST_F(RowFetcherTest, ABatchThatMissesNothingArrivesWithoutAFetch) {
  start(1, {});
  fetcher->wait(1);
  EXPECT_THAT(all_arrived(), ElementsAre(1));
  EXPECT_EQ(gate.num_calls(StoreCall::kFetch), 0);
}

TEST_F(RowFetcherTest, ThereIsNothingToWaitForBeforeTheFirstRequest) {
  fetcher->wait(1);
  fetcher->forget(1);
}

TEST_F(RowFetcherTest, BatchesAreFetchedAtTheSameTime) {
  gate.close(StoreCall::kFetch);
  for (const std::int64_t step : {1, 2, 3, 4}) start(step, {static_cast<std::uint64_t>(step)});
  gate.wait_for_waiting(StoreCall::kFetch, 3);
  EXPECT_EQ(gate.num_calls(StoreCall::kFetch), 3);  // it has three threads
  gate.open_all();
  fetcher->wait(4);
  EXPECT_EQ(gate.num_calls(StoreCall::kFetch), 4);
}

/// A later batch may have found a slot filled by an earlier one.
TEST_F(RowFetcherTest, ABatchWaitsForAllBeforeItInWhateverOrderTheStoreAnswers) {
  gate.close(StoreCall::kFetch);
  std::map<std::vector<Key>, std::int64_t> number_of;
  for (const std::int64_t step : {1, 2, 3}) start(step, {static_cast<std::uint64_t>(step)});
  gate.wait_for_waiting(StoreCall::kFetch, 3);
  for (std::int64_t number = 1; number <= 3; ++number) {
    number_of[gate.records(StoreCall::kFetch)[static_cast<std::size_t>(number - 1)].keys] = number;
  }
  std::array<std::future<std::string>, 3> waits = {wait(1), wait(2), wait(3)};
  gate.let(StoreCall::kFetch, number_of[batches[3].keys]);
  gate.let(StoreCall::kFetch, number_of[batches[2].keys]);
  EXPECT_TRUE(blocks(waits[1]));
  EXPECT_TRUE(blocks(waits[2]));
  gate.let(StoreCall::kFetch, number_of[batches[1].keys]);
  for (std::future<std::string>& waiting : waits) EXPECT_EQ(result_of(waiting), "");
  EXPECT_EQ(all_arrived().size(), 3U);
  EXPECT_EQ(all_arrived().back(), 1);
}

TEST_F(RowFetcherTest, AnEarlierBatchDoesNotWaitForALaterOne) {
  gate.close(StoreCall::kFetch);
  start(1, {1});
  gate.wait_for_waiting(StoreCall::kFetch, 1);
  start(2, {2});
  gate.wait_for_waiting(StoreCall::kFetch, 2);
  gate.let(StoreCall::kFetch, 1);
  std::future<std::string> waiting = wait(1);
  EXPECT_EQ(result_of(waiting), "");
}

TEST_F(RowFetcherTest, TheErrorOfAFetchReachesItsBatchAndAllAfterIt) {
  gate.close(StoreCall::kFetch);
  gate.fail(StoreCall::kFetch, 1);
  start(1, {1});
  gate.wait_for_waiting(StoreCall::kFetch, 1);
  start(2, {2});
  std::future<std::string> first = wait(1), second = wait(2);
  gate.open_all();
  EXPECT_THAT(result_of(first), HasSubstr("call 1 fails"));
  EXPECT_THAT(result_of(second), HasSubstr("call 1 fails"));
  start(3, {3});
  std::future<std::string> third = wait(3);
  EXPECT_THAT(result_of(third), HasSubstr("call 1 fails"));
  EXPECT_THAT(all_arrived(), ::testing::Not(::testing::Contains(1)));
}

TEST_F(RowFetcherTest, TheErrorOfAnArrivalReachesItsBatch) {
  fetcher->start({.step = 1, .arrive = [] { throw Error(ErrorCode::kIo, "no arrival"); }});
  std::future<std::string> waiting = wait(1);
  EXPECT_EQ(result_of(waiting), "no arrival");
}

TEST_F(RowFetcherTest, StoppingEndsAllWaits) {
  gate.close(StoreCall::kFetch);
  for (const std::int64_t step : {1, 2, 3, 4, 5}) start(step, {1});
  gate.wait_for_waiting(StoreCall::kFetch, 3);
  std::array<std::future<std::string>, 2> waits = {wait(1), wait(5)};
  EXPECT_TRUE(blocks(waits[0]));
  fetcher->stop();
  for (std::future<std::string>& waiting : waits) {
    EXPECT_THAT(result_of(waiting), HasSubstr("stopped"));
  }
  gate.open_all();
  fetcher.reset();
  EXPECT_EQ(gate.num_calls(StoreCall::kFetch), 3);  // those that were not on their way are dropped
}

TEST_F(RowFetcherTest, ABatchOnItsWayIsForgottenOnceItIsThere) {
  gate.close(StoreCall::kFetch);
  start(1, {1});
  gate.wait_for_waiting(StoreCall::kFetch, 1);
  std::future<std::string> forgetting = forget(1);
  EXPECT_TRUE(blocks(forgetting));
  gate.let(StoreCall::kFetch, 1);
  EXPECT_EQ(result_of(forgetting), "");
  EXPECT_TRUE(has_rows(1));
}

TEST_F(RowFetcherTest, ABatchOnItsWayIsForgottenOnceItIsThereAlsoAfterAStop) {
  gate.close(StoreCall::kFetch);
  start(1, {1});
  gate.wait_for_waiting(StoreCall::kFetch, 1);
  fetcher->stop();
  std::future<std::string> forgetting = forget(1);
  EXPECT_TRUE(blocks(forgetting));  // the store still writes into its memory
  gate.open_all();
  EXPECT_EQ(result_of(forgetting), "");
}

TEST_F(RowFetcherTest, ABatchOnItsWayIsForgottenAfterAnErrorOfAnother) {
  gate.close(StoreCall::kFetch);
  gate.fail(StoreCall::kFetch, 2);
  start(1, {1});
  gate.wait_for_waiting(StoreCall::kFetch, 1);
  start(2, {2});
  gate.wait_for_waiting(StoreCall::kFetch, 2);
  gate.let(StoreCall::kFetch, 2);
  std::future<std::string> forgetting = forget(1);
  EXPECT_TRUE(blocks(forgetting));
  gate.open_all();
  EXPECT_EQ(result_of(forgetting), "");
  forgetting = forget(2);
  EXPECT_EQ(result_of(forgetting), "");
}

TEST_F(RowFetcherTest, ABatchThatIsNotOnItsWayIsForgottenAtOnceAndNotFetched) {
  gate.close(StoreCall::kFetch);
  for (const std::int64_t step : {1, 2, 3, 4, 5}) {
    start(step, {static_cast<std::uint64_t>(step)});
  }
  gate.wait_for_waiting(StoreCall::kFetch, 3);
  std::future<std::string> forgetting = forget(4);
  EXPECT_EQ(result_of(forgetting), "");
  gate.open_all();
  fetcher->wait(5);  // is not held up
  EXPECT_EQ(gate.num_calls(StoreCall::kFetch), 4);
  EXPECT_THAT(all_arrived(), ::testing::Not(::testing::Contains(4)));
}

TEST_F(RowFetcherTest, ManyBatchesArriveInWhateverOrder) {
  constexpr std::int64_t kSteps = 200;
  std::mt19937_64 random(3);
  gate.close(StoreCall::kFetch);
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    start(step, {random() % 1000, 1000 + random() % 1000});
    if (step % 3 != 0) continue;
    gate.wait_for_waiting(StoreCall::kFetch, 3);
    gate.let_all(StoreCall::kFetch, random);
    fetcher->wait(step);
    for (const std::int64_t since : {step - 2, step - 1, step}) EXPECT_TRUE(has_rows(since));
  }
  gate.open_all();
  fetcher->wait(kSteps);
  EXPECT_EQ(std::ssize(all_arrived()), kSteps);
}

}  // namespace
}  // namespace satrap::embedding
