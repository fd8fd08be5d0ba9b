// What every RowStore promises, with tables in this process, with shards, and with the tests' fake.

#include "satrap/table/row_store.h"

#include <memory>
#include <thread>
#include <vector>

#include "satrap/core/thread_pool.h"
#include "satrap/table/table_row_store.h"
#include "satrap/table/table_snapshot.h"
#include "tests/ps/shard_rows_fixture.h"
#include "tests/table/fake_row_store.h"

namespace satrap::ps {
namespace {

enum class Kind { kTables, kFakeOverTables, kOneShard, kThreeShards };

std::vector<Row> fetch_from(table::RowStore& store,
                            const std::vector<table::TableSpec>& tables,
                            const std::vector<Key>& keys) {
  std::vector<Row> rows = some_rows(tables, keys, 0);
  std::vector<std::byte*> to;
  for (Row& row : rows) to.push_back(row.data());
  store.fetch(keys, to);
  return rows;
}

void put_to(table::RowStore& store,
            std::int64_t step,
            const std::vector<Key>& keys,
            const std::vector<Row>& rows) {
  std::vector<const std::byte*> from;
  for (const Row& row : rows) from.push_back(row.data());
  store.put(step, keys, from);
}

std::vector<std::unique_ptr<table::Table>> make_tables(const std::vector<table::TableSpec>& specs) {
  std::vector<std::unique_ptr<table::Table>> tables;
  for (const table::TableSpec& spec : specs) {
    tables.push_back(std::make_unique<table::Table>(spec, kSeed));
  }
  return tables;
}

std::unique_ptr<table::TableRowStore> store_over(
    const std::vector<std::unique_ptr<table::Table>>& tables,
    ThreadPool& pool) {
  std::vector<table::Table*> pointers;
  for (const auto& table : tables) pointers.push_back(table.get());
  return std::make_unique<table::TableRowStore>(pointers, pool);
}

class RowStoreContract : public ShardTest, public testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kTables || GetParam() == Kind::kFakeOverTables) {
      in_process_ = make_tables(tables_);
      real_ = store_over(in_process_, pool_);
      store_ = real_.get();
      if (GetParam() == Kind::kFakeOverTables) {
        fake_ = std::make_unique<table::FakeRowStore>(*real_);
        store_ = fake_.get();
      }
      return;
    }
    const std::int64_t num_shards = GetParam() == Kind::kOneShard ? 1 : 3;
    servers_ = serve(num_shards, {.num_workers = 2});
    clients_ = clients_of({.num_shards = num_shards, .job = job_of(1, 0, false)});
    store_ = clients_[0].get();
  }

  std::vector<Row> fetch(const std::vector<Key>& keys) {
    return fetch_from(*store_, tables_, keys);
  }
  void put(std::int64_t step, const std::vector<Key>& keys, const std::vector<Row>& rows) {
    put_to(*store_, step, keys, rows);
  }

  table::RowStore* store_ = nullptr;

 private:
  ThreadPool pool_{3};
  std::vector<std::unique_ptr<table::Table>> in_process_;
  std::unique_ptr<table::TableRowStore> real_;
  std::unique_ptr<table::FakeRowStore> fake_;
  std::vector<std::unique_ptr<ShardServer>> servers_;
  std::vector<std::unique_ptr<ShardClient>> clients_;
};

std::string name_of(const testing::TestParamInfo<Kind>& store) {
  constexpr const char* kNamesOfKinds[] = {"Tables", "FakeOverTables", "OneShard", "ThreeShards"};
  return kNamesOfKinds[static_cast<std::size_t>(store.param)];
}
INSTANTIATE_TEST_SUITE_P(
    Stores,
    RowStoreContract,
    testing::Values(Kind::kTables, Kind::kFakeOverTables, Kind::kOneShard, Kind::kThreeShards),
    name_of);

TEST_P(RowStoreContract, NewRowsAreFetchedAsTheyStart) {
  const std::vector<Key> keys = all_keys(700);  // more than one block
  const auto tables = make_tables(tables_);
  std::vector<Row> expected;
  for (const Key key : keys) {
    const table::Table& table = *tables[static_cast<std::size_t>(table_of(key))];
    expected.emplace_back(static_cast<std::size_t>(table.row_bytes()));
    table.initialize_row(key, expected.back().data());
  }
  EXPECT_EQ(fetch(keys), expected);
}

TEST_P(RowStoreContract, WhatIsPutIsFetchedHeadersIncluded) {
  const std::vector<Key> keys = all_keys(700);
  std::vector<Key> known;  // the put creates the others
  for (std::size_t u = 0; u < keys.size(); u += 2) known.push_back(keys[u]);
  fetch(known);
  const std::vector<Row> rows = some_rows(tables_, keys, 1);
  put(9, keys, rows);
  EXPECT_EQ(fetch(keys), rows);
  const std::vector<Key> some = {keys[3], keys[600]};
  const std::vector<Row> newer = some_rows(tables_, some, 2);
  put(3, some, newer);  // steps of puts need not ascend
  EXPECT_EQ(fetch(some), newer);
  EXPECT_EQ(fetch({keys[4]}), std::vector<Row>{rows[4]});
}

TEST_P(RowStoreContract, NoKeysAreFetchedAndPut) {
  EXPECT_TRUE(fetch({}).empty());
  put(1, {}, {});
}

TEST_P(RowStoreContract, RefusesARowOfAnotherKeyAndAStepThatIsNone) {
  const std::vector<Key> keys = all_keys(2);
  const std::vector<Row> before = fetch(keys);
  std::vector<Row> rows = some_rows(tables_, keys, 1);
  std::swap(rows[0], rows[1]);  // of the same table
  EXPECT_THROW(put(1, keys, rows), Error);
  EXPECT_THROW(put(0, keys, some_rows(tables_, keys, 1)), Error);
  EXPECT_EQ(fetch(keys), before);
}

TEST_P(RowStoreContract, ThreadsFetchAndPutAtTheSameTime) {
  constexpr std::size_t kThreads = 3;
  std::vector<Key> keys_of[kThreads];
  for (const Key key : all_keys(300)) keys_of[id_of(key) % kThreads].push_back(key);
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads, 0);
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t n = 1; n <= 20; ++n) {
        const std::vector<Row> rows = some_rows(tables_, keys_of[i], n);
        put(1, keys_of[i], rows);
        wrong[i] += fetch(keys_of[i]) != rows;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

TEST_F(ShardTest, ATableWithLimitsIsNoRowStore) {
  tables_[1].limits.ttl_steps = 5;
  const auto tables = make_tables(tables_);
  ThreadPool pool(1);
  EXPECT_NE(message_of([&] { store_over(tables, pool); }).find("'site' has limits"),
            std::string::npos);
}

TEST_F(ShardTest, AnyNumberOfThreadsLeavesTheSameRowsInTheSameOrder) {
  const std::vector<Key> keys = all_keys(20'000);  // several units in each table
  std::vector<Key> some;
  for (std::size_t u = 0; u < keys.size(); u += 3) some.push_back(keys[u]);
  const std::vector<Row> rows = some_rows(tables_, some, 1);
  std::vector<std::vector<Row>> fetched, stored;
  for (const std::int64_t num_threads : {1, 4}) {
    ThreadPool pool(num_threads);
    const auto tables = make_tables(tables_);
    const auto store = store_over(tables, pool);
    put_to(*store, 2, some, rows);
    fetched.push_back(fetch_from(*store, tables_, keys));
    stored.emplace_back();
    for (const auto& table : tables) {
      table::TableSnapshot(*table, kMaxStep).write([&](std::span<const std::byte> part) {
        stored.back().emplace_back(part.begin(), part.end());
      });
    }
  }
  EXPECT_EQ(fetched[0], fetched[1]);
  EXPECT_EQ(stored[0], stored[1]);
  for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(fetched[1][3 * i], rows[i]);
}

TEST_F(ShardTest, TheFakeStoreWaitsAndFailsAsItIsTold) {
  const auto tables = make_tables(tables_);
  ThreadPool pool(1);
  const auto real = store_over(tables, pool);
  table::FakeRowStore fake(*real);
  const std::vector<Key> keys = all_keys(5);
  fake.fail_next(2);
  EXPECT_THROW(put_to(fake, 1, keys, some_rows(tables_, keys, 1)), Error);
  EXPECT_THROW(fetch_from(fake, tables_, keys), Error);
  for (const auto& table : tables) EXPECT_EQ(table->num_rows(), 0);
  fake.close_gate();
  std::thread slow([&] { put_to(fake, 1, keys, some_rows(tables_, keys, 2)); });
  fake.wait_for_waiting(1);
  for (const auto& table : tables) EXPECT_EQ(table->num_rows(), 0);
  fake.let(1);
  slow.join();
  EXPECT_EQ(fetch_from(*real, tables_, keys), some_rows(tables_, keys, 2));
}

}  // namespace
}  // namespace satrap::ps
