#include "src/embedding/write_back.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/backend/device.h"
#include "satrap/core/error.h"
#include "tests/embedding/blocking_call.h"
#include "tests/embedding/gated_row_store.h"

namespace satrap::embedding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kWriteBackDeadline(60);

class WriteBackTest : public ::testing::Test {
 protected:
  ~WriteBackTest() override { gate.open_all(); }

  static Key key(std::uint64_t id) { return make_key(TableId{0}, id); }

  struct Row {
    std::uint64_t id;
    std::int64_t value;
  };
  void add(const std::vector<Row>& rows,
           std::int64_t step,
           WriteBack::Kind kind = WriteBack::Kind::kEvicted) {
    std::unique_ptr<WriteBack::Rows> added = write_back->take_free();
    added->begin(*device, std::ssize(rows), SmallRowStore::kRowBytes);
    for (const Row& row : rows) {
      SmallRowStore::write(key(row.id), row.value,
                           added->data() + added->count() * SmallRowStore::kRowBytes);
      added->add_key(key(row.id));
    }
    write_back->add(std::move(added), step, kind);
  }

  /// The value of each id that is under way; -1 of others.
  std::vector<std::int64_t> find(const std::vector<std::uint64_t>& ids) {
    std::vector<std::pair<Key, std::size_t>> order;
    for (std::size_t i = 0; i < ids.size(); ++i) order.emplace_back(key(ids[i]), i);
    std::ranges::sort(order);
    std::vector<std::byte> memory(ids.size() * SmallRowStore::kRowBytes);
    std::vector<Key> keys;
    std::vector<std::byte*> places;
    for (const auto& [of_id, i] : order) {
      keys.push_back(of_id);
      places.push_back(memory.data() + i * SmallRowStore::kRowBytes);
    }
    std::vector<bool> found;
    write_back->find(keys, places, found);
    std::vector<std::int64_t> values(ids.size(), -1);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (found[i]) values[order[i].second] = SmallRowStore::value_of(places[i]);
    }
    return values;
  }

  std::vector<std::int64_t> stored(const std::vector<std::uint64_t>& ids) {
    std::vector<std::int64_t> values;
    for (const std::uint64_t id : ids) values.push_back(store.value(key(id)));
    return values;
  }

 public:
  const std::unique_ptr<backend::Device> device = backend::make_host_device();
  SmallRowStore store;
  GatedRowStore gate{store};
  static constexpr std::int64_t kMaxBytes = 3 * SmallRowStore::kRowBytes;
  std::unique_ptr<WriteBack> write_back = std::make_unique<WriteBack>(gate, kMaxBytes);
};

TEST_F(WriteBackTest, RowsThatWereAddedAreInTheStoreOnceItIsEmpty) {
  add({{7, 70}, {3, 30}, {5, 50}}, 4);
  write_back->wait_until_empty();
  EXPECT_THAT(stored({3, 5, 7, 9}), ElementsAre(30, 50, 70, 0));
  EXPECT_THAT(find({3, 5, 7}), ElementsAre(-1, -1, -1));
  ASSERT_EQ(gate.num_calls(StoreCall::kPut), 1);
  EXPECT_EQ(gate.records(StoreCall::kPut)[0].step, 4);
  EXPECT_EQ(write_back->rows_put(), 3);
  EXPECT_EQ(write_back->bytes_put(), 3 * SmallRowStore::kRowBytes);
}

TEST_F(WriteBackTest, AnEmptyOneIsEmptyAtOnce) {
  write_back->wait_until_empty();
  write_back->wait_for_room();
  EXPECT_EQ(gate.num_calls(StoreCall::kPut), 0);
  EXPECT_THAT(find({1}), ElementsAre(-1));
}

TEST_F(WriteBackTest, ARowIsFoundInItsNewestVersionUntilItIsInTheStore) {
  gate.close(StoreCall::kPut);
  add({{1, 10}, {2, 20}}, 1);
  gate.wait_for_waiting(StoreCall::kPut, 1);
  EXPECT_THAT(find({2, 1, 3}), ElementsAre(20, 10, -1));  // while its put is under way
  add({{1, 11}}, 2);
  add({{1, 12}, {4, 40}}, 3);
  EXPECT_THAT(find({1, 2, 4}), ElementsAre(12, 20, 40));
  gate.let(StoreCall::kPut, 1);
  gate.wait_for_waiting(StoreCall::kPut, 1);
  EXPECT_THAT(stored({1, 2, 4}), ElementsAre(10, 20, 0));
  EXPECT_THAT(find({1, 4}), ElementsAre(12, 40));
  gate.open(StoreCall::kPut);
  write_back->wait_until_empty();
  EXPECT_THAT(stored({1, 2, 4}), ElementsAre(12, 20, 40));
  EXPECT_THAT(find({1, 2, 4}), ElementsAre(-1, -1, -1));
}

TEST_F(WriteBackTest, WhatWaitsIsPutTogetherWithTheNewestVersionOfEachRow) {
  gate.close(StoreCall::kPut);
  add({{9, 90}}, 1);
  gate.wait_for_waiting(StoreCall::kPut, 1);
  add({{1, 10}, {2, 20}}, 2);
  add({{1, 11}, {3, 30}}, 5);
  add({{2, 22}}, 3);
  gate.open(StoreCall::kPut);
  write_back->wait_until_empty();
  EXPECT_THAT(stored({1, 2, 3, 9}), ElementsAre(11, 22, 30, 90));
  const std::vector<GatedRowStore::Record> puts = gate.records(StoreCall::kPut);
  ASSERT_EQ(puts.size(), 2U);
  EXPECT_EQ(puts[1].keys.size(), 3U);
  EXPECT_EQ(puts[1].step, 5);  // the last of all
  EXPECT_EQ(write_back->rows_put(), 4);
}

TEST_F(WriteBackTest, RowsThatNoStepHasUpdatedArePutByTheFirst) {
  add({{1, 10}}, 0);
  write_back->wait_until_empty();
  EXPECT_EQ(gate.records(StoreCall::kPut)[0].step, 1);
}

TEST_F(WriteBackTest, RowsAreReusedWithAllTheyHold) {
  add({{1, 10}, {2, 20}}, 1);
  write_back->wait_until_empty();
  add({{3, 30}}, 2);
  write_back->wait_until_empty();
  EXPECT_THAT(stored({1, 2, 3}), ElementsAre(10, 20, 30));
  EXPECT_EQ(gate.records(StoreCall::kPut)[1].keys, std::vector<Key>{key(3)});
}

TEST_F(WriteBackTest, AnActionRunsBetweenWhatWasAddedBeforeAndAfter) {
  gate.close(StoreCall::kPut);
  std::vector<std::int64_t> at_first, at_second;
  add({{1, 10}}, 1);
  gate.wait_for_waiting(StoreCall::kPut, 1);
  add({{1, 11}, {2, 20}}, 2);
  write_back->add_action([&] { at_first = stored({1, 2}); });
  add({{1, 12}}, 3);
  write_back->add_action([&] { at_second = stored({1, 2}); });
  add({{2, 22}}, 4);
  EXPECT_THAT(find({1, 2}), ElementsAre(12, 22));
  gate.open(StoreCall::kPut);
  write_back->wait_until_empty();
  EXPECT_THAT(at_first, ElementsAre(11, 20));
  EXPECT_THAT(at_second, ElementsAre(12, 20));
  EXPECT_THAT(stored({1, 2}), ElementsAre(12, 22));
}

TEST_F(WriteBackTest, AnActionWithoutRowsRunsToo) {
  std::promise<void> ran;
  write_back->add_action([&] { ran.set_value(); });
  EXPECT_EQ(ran.get_future().wait_for(kWriteBackDeadline), std::future_status::ready);
}

TEST_F(WriteBackTest, WaitingForRoomLastsUntilTheStoreHasEnough) {
  gate.close(StoreCall::kPut);
  add({{1, 10}, {2, 20}, {3, 30}}, 1);
  write_back->wait_for_room();  // exactly the limit
  gate.wait_for_waiting(StoreCall::kPut, 1);
  add({{4, 40}}, 2);
  std::future<std::string> room = message_of_blocking([&] { write_back->wait_for_room(); });
  EXPECT_TRUE(blocks(room));
  gate.let(StoreCall::kPut, 1);
  EXPECT_EQ(result_of(room), "");
  gate.wait_for_waiting(StoreCall::kPut, 1);
}

/// A save of the whole cache does not hold up those that evict.
TEST_F(WriteBackTest, RowsThatAreSavedTakeNoRoom) {
  gate.close(StoreCall::kPut);
  add({{1, 10}, {2, 20}, {3, 30}, {4, 40}}, 1, WriteBack::Kind::kSaved);
  gate.wait_for_waiting(StoreCall::kPut, 1);
  write_back->wait_for_room();
  add({{1, 11}, {5, 50}}, 2);
  write_back->wait_for_room();
  EXPECT_THAT(find({1, 2, 5}), ElementsAre(11, 20, 50));
  add({{6, 60}, {7, 70}}, 3);
  std::future<std::string> room = message_of_blocking([&] { write_back->wait_for_room(); });
  EXPECT_TRUE(blocks(room));
  gate.open(StoreCall::kPut);
  EXPECT_EQ(result_of(room), "");
  write_back->wait_until_empty();
  EXPECT_THAT(stored({1, 2, 5, 6}), ElementsAre(11, 20, 50, 60));
  write_back->wait_for_room();
  EXPECT_EQ(write_back->rows_put(), 8);
}

TEST_F(WriteBackTest, TheErrorOfAPutReachesWhoeverWaits) {
  gate.close(StoreCall::kPut);
  gate.fail(StoreCall::kPut, 1);
  add({{1, 10}, {2, 20}, {3, 30}, {4, 40}}, 1);
  std::future<std::string> room = message_of_blocking([&] { write_back->wait_for_room(); });
  std::future<std::string> empty = message_of_blocking([&] { write_back->wait_until_empty(); });
  EXPECT_TRUE(blocks(empty));
  gate.open(StoreCall::kPut);
  EXPECT_THAT(result_of(room), HasSubstr("call 1 fails"));
  EXPECT_THAT(result_of(empty), HasSubstr("call 1 fails"));
  EXPECT_THROW(write_back->wait_for_room(), Error);  // later ones too
  EXPECT_THROW(write_back->wait_until_empty(), Error);
  EXPECT_THAT(find({1, 4}), ElementsAre(10, 40));  // the store does not have them
  EXPECT_THAT(stored({1, 4}), ElementsAre(0, 0));
}

TEST_F(WriteBackTest, NothingIsPutAfterAnError) {
  gate.fail(StoreCall::kPut, 1);
  add({{1, 10}}, 1);
  std::future<std::string> empty = message_of_blocking([&] { write_back->wait_until_empty(); });
  EXPECT_THAT(result_of(empty), HasSubstr("call 1 fails"));
  add({{1, 11}}, 2);
  write_back.reset();
  EXPECT_EQ(gate.num_calls(StoreCall::kPut), 1);
  EXPECT_THAT(stored({1}), ElementsAre(0));
}

/// Whoever waits for what an action promised must not wait for ever.
TEST_F(WriteBackTest, AnActionThatAnErrorPreventsIsDestroyed) {
  gate.fail(StoreCall::kPut, 1);
  gate.close(StoreCall::kPut);
  auto before = std::make_shared<std::promise<void>>();
  std::future<void> never = before->get_future();
  add({{1, 10}}, 1);
  write_back->add_action([before = std::move(before)] { before->set_value(); });
  gate.open(StoreCall::kPut);
  ASSERT_EQ(never.wait_for(kWriteBackDeadline), std::future_status::ready);
  EXPECT_THROW(never.get(), std::future_error);
  auto after = std::make_shared<std::promise<void>>();
  never = after->get_future();
  write_back->add_action([after = std::move(after)] { after->set_value(); });
  ASSERT_EQ(never.wait_for(kWriteBackDeadline), std::future_status::ready);
  EXPECT_THROW(never.get(), std::future_error);
}

TEST_F(WriteBackTest, AnActionThatIsStoppedIsDestroyed) {
  gate.close(StoreCall::kPut);
  auto taken = std::make_shared<std::promise<void>>();
  std::future<void> never = taken->get_future();
  add({{1, 10}}, 1);
  gate.wait_for_waiting(StoreCall::kPut, 1);
  write_back->add_action([taken = std::move(taken)] { taken->set_value(); });
  write_back->stop();
  gate.open(StoreCall::kPut);
  ASSERT_EQ(never.wait_for(kWriteBackDeadline), std::future_status::ready);
  EXPECT_THROW(never.get(), std::future_error);
  auto after = std::make_shared<std::promise<void>>();
  never = after->get_future();
  write_back->add_action([after = std::move(after)] { after->set_value(); });
  ASSERT_EQ(never.wait_for(kWriteBackDeadline), std::future_status::ready);
  EXPECT_THROW(never.get(), std::future_error);
}

TEST_F(WriteBackTest, TheErrorOfAnActionReachesWhoeverWaits) {
  write_back->add_action([] { throw Error(ErrorCode::kIo, "the action fails"); });
  add({{1, 10}}, 1);
  std::future<std::string> empty = message_of_blocking([&] { write_back->wait_until_empty(); });
  EXPECT_EQ(result_of(empty), "the action fails");
}

TEST_F(WriteBackTest, StoppingEndsAllWaits) {
  gate.close(StoreCall::kPut);
  add({{1, 10}, {2, 20}, {3, 30}, {4, 40}}, 1);
  gate.wait_for_waiting(StoreCall::kPut, 1);
  std::future<std::string> room = message_of_blocking([&] { write_back->wait_for_room(); });
  std::future<std::string> empty = message_of_blocking([&] { write_back->wait_until_empty(); });
  EXPECT_TRUE(blocks(room));
  write_back->stop();
  EXPECT_THAT(result_of(room), HasSubstr("stopped"));
  EXPECT_THAT(result_of(empty), HasSubstr("stopped"));
}

TEST_F(WriteBackTest, WhatWaitsWhenItIsStoppedIsNotPut) {
  gate.close(StoreCall::kPut);
  add({{1, 10}}, 1);
  gate.wait_for_waiting(StoreCall::kPut, 1);
  add({{2, 20}}, 2);
  write_back->stop();
  gate.open(StoreCall::kPut);
  write_back.reset();
  EXPECT_THAT(stored({1, 2}), ElementsAre(10, 0));
}

TEST_F(WriteBackTest, ReadersAlwaysFindTheNewestVersionWhileOthersAdd) {
  constexpr std::int64_t kVersions = 300;
  std::atomic<std::int64_t> added = 0;
  std::atomic<bool> is_wrong = false;
  std::future<void> adding = std::async(std::launch::async, [&] {
    for (std::int64_t version = 1; version <= kVersions; ++version) {
      add({{1, version}, {static_cast<std::uint64_t>(2 + version % 5), version}}, version);
      added = version;
    }
  });
  while (added < kVersions) {
    const std::int64_t least = added;
    std::int64_t found = find({1})[0];
    if (found < 0) found = store.value(key(1));  // so it is in the store
    is_wrong = is_wrong || found < least;
  }
  adding.get();
  write_back->wait_until_empty();
  EXPECT_FALSE(is_wrong);
  EXPECT_THAT(stored({1}), ElementsAre(kVersions));
}

}  // namespace
}  // namespace satrap::embedding
