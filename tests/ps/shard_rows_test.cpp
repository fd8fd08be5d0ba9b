// Whole rows, read and overwritten on shards.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "satrap/core/file.h"
#include "tests/ps/shard_rows_fixture.h"

namespace satrap::ps {
namespace {

class ShardRows : public ShardTest {
 protected:
  std::vector<Row> fetch(ShardClient& client, const std::vector<Key>& keys) const {
    std::vector<Row> rows = some_rows(tables_, keys, 0);
    std::vector<std::byte*> to;
    for (Row& row : rows) to.push_back(row.data());
    client.fetch(keys, to);
    return rows;
  }

  static void put(ShardClient& client,
                  std::int64_t step,
                  const std::vector<Key>& keys,
                  const std::vector<Row>& rows) {
    std::vector<const std::byte*> from;
    for (const Row& row : rows) from.push_back(row.data());
    client.put(step, keys, from);
  }

  std::string directory() {
    const std::string path = folder_.path() + "/checkpoint";
    ensure_directory(path);
    return path;
  }

  /// Weights and state of all rows in the files.
  Oracle::Rows rows_in(const std::vector<SnapshotFile>& files) {
    Oracle::Rows rows;
    for (const SnapshotFile& file : files) {
      const std::string text = read_file(directory() + "/" + file.name);
      const Bytes bytes = bytes_of_text(text);
      for (std::int64_t at = 0; at < std::ssize(bytes); at += file.row_bytes) {
        const Row row(bytes.begin() + at, bytes.begin() + at + file.row_bytes);
        EXPECT_TRUE(rows.emplace(header_in(row).key, floats_in(row)).second);
      }
    }
    return rows;
  }
};

TEST_F(ShardRows, AFetchOfNewKeysCreatesRowsAsTheyStart) {
  const std::vector<Key> keys = all_keys(700);  // more than a block of a worker
  for (const std::int64_t num_shards : {1, 3}) {
    const auto servers = serve(num_shards, {.num_workers = 2});
    auto clients = clients_of({.num_shards = num_shards, .job = job_of(1, 0, false)});
    const std::vector<Row> rows = fetch(*clients[0], keys);
    std::vector<Row> expected;
    for (const Key key : keys) {
      const table::Table table(tables_[static_cast<std::size_t>(table_of(key))], kSeed);
      table.initialize_row(
          key, expected.emplace_back(static_cast<std::size_t>(table.row_bytes())).data());
    }
    EXPECT_EQ(rows, expected);
    std::int64_t num_rows = 0;
    for (const ShardStats& stats : clients[0]->stats()) num_rows += stats.rows;
    EXPECT_EQ(num_rows, std::ssize(keys));
  }
}

TEST_F(ShardRows, AFetchAfterTrainingHasWeightsStateAndTheLastStep) {
  Cluster cluster{.num_shards = 3, .num_workers = 2, .job = job_of(2, 1, true)};
  cluster.encoding = FloatType::kBf16;  // of steps; whole rows are unchanged
  const Oracle oracle(tables_);
  const Oracle::Rows expected = expected_rows(oracle, cluster).back();
  const auto servers = serve(3, {.num_workers = 2});
  auto clients = clients_of(cluster);
  train_all(clients, cluster);
  clients[0]->wait_applied(cluster.num_steps);
  const std::vector<Key> keys = all_keys(cluster.num_ids + 5);
  const std::vector<Row> rows = fetch(*clients[1], keys);
  for (std::size_t u = 0; u < keys.size(); ++u) {
    const auto found = expected.find(keys[u]);
    const bool is_trained = found != expected.end();
    EXPECT_EQ(floats_in(rows[u]), is_trained ? found->second : oracle.initial(keys[u]));
    std::uint32_t last_step = 0, count = 0;
    for (std::int64_t step = 1; step <= cluster.num_steps; ++step) {
      bool is_in_step = false;
      for (std::int64_t rank = 0; rank < 2; ++rank) {
        const auto of_rank = keys_of_step(rank, step, cluster.num_ids);
        is_in_step |= std::binary_search(of_rank.begin(), of_rank.end(), keys[u]);
      }
      count += is_in_step;
      if (is_in_step) last_step = static_cast<std::uint32_t>(step);
    }
    EXPECT_EQ(header_in(rows[u]).key, keys[u]);
    EXPECT_EQ(header_in(rows[u]).last_step, last_step);
    EXPECT_EQ(header_in(rows[u]).count, count);
  }
}

TEST_F(ShardRows, WhatIsPutIsFetchedLookedUpAndPulled) {
  for (const std::int64_t num_shards : {1, 3}) {
    const auto servers = serve(num_shards, {.num_workers = 2});
    auto clients = clients_of({.num_shards = num_shards, .job = job_of(1, 0, false)});
    const std::vector<Key> keys = all_keys(700);
    std::vector<Key> known;  // the put creates the others
    for (std::size_t u = 0; u < keys.size(); u += 2) known.push_back(keys[u]);
    fetch(*clients[0], known);
    const std::vector<Row> rows = some_rows(tables_, keys, 1);
    put(*clients[0], 9, keys, rows);
    const std::vector<Row> fetched = fetch(*clients[0], keys);
    StepRows looked_up, pulled;
    clients[0]->lookup(keys, looked_up);
    clients[0]->pull(1, keys, pulled);
    clients[0]->wait(pulled);
    for (std::size_t u = 0; u < keys.size(); ++u) {
      EXPECT_EQ(fetched[u], rows[u]) << "headers too";
      std::vector<float> weights = floats_in(rows[u]);
      weights.resize(weights_at(looked_up, u, keys[u]).size());
      EXPECT_EQ(weights_at(looked_up, u, keys[u]), weights);
      EXPECT_EQ(weights_at(pulled, u, keys[u]), weights);
    }
  }
}

TEST_F(ShardRows, TrainingGoesOnFromWhatIsPut) {
  // Rows of one cluster are copied to another, which has new keys for everything else.
  Cluster cluster{.num_shards = 2, .num_workers = 2, .job = job_of(1, 0, false), .num_steps = 20};
  const Oracle oracle(tables_);
  const auto servers = serve(2, {.num_workers = 2});
  auto clients = clients_of(cluster);
  train(*clients[0], cluster, 0);
  clients[0]->wait_applied(20);
  const std::vector<Key> keys = all_keys(cluster.num_ids);
  const std::vector<Row> rows = fetch(*clients[0], keys);
  cluster.num_steps = 40;
  cluster.job.session = 6;
  cluster.job.first_step = 21;
  clients = clients_of(cluster);
  put(*clients[0], 20, keys, rows);
  train(*clients[0], cluster, 0);
  clients[0]->wait_applied(40);
  expect_rows(*clients[0], oracle, expected_rows(oracle, cluster).back(), cluster.num_ids);
}

TEST_F(ShardRows, NoKeysAreFetchedAndPut) {
  const auto servers = serve(2);
  auto clients = clients_of({.num_shards = 2, .job = job_of(1, 0, false)});
  EXPECT_TRUE(fetch(*clients[0], {}).empty());
  put(*clients[0], 1, {}, {});
  for (const ShardStats& stats : clients[0]->stats()) EXPECT_EQ(stats.rows, 0);
}

TEST_F(ShardRows, APutWhileASnapshotIsWrittenIsNotInItButInTheNext) {
  for (const bool async : {false, true}) {
    Cluster cluster{.num_shards = 2, .num_workers = 2, .job = job_of(1, 0, false), .num_steps = 10};
    cluster.job.async = async;
    cluster.num_ids = 300;
    const auto servers = serve(2, {.num_workers = 2});
    auto clients = clients_of(cluster);
    const std::vector<Key> keys = all_keys(300);
    put(*clients[0], 10, keys, some_rows(tables_, keys, 1));
    // In async mode no update needs to be applied first.
    if (!async) train(*clients[0], cluster, 0);
    clients[0]->wait_applied(async ? 0 : 10);
    Oracle::Rows expected;
    for (const Row& row : fetch(*clients[0], keys)) expected[header_in(row).key] = floats_in(row);

    clients[0]->begin_snapshot(10);
    // Puts of later steps, and of earlier ones.
    put(*clients[0], 11, keys, some_rows(tables_, keys, 2));
    put(*clients[0], 3, keys, some_rows(tables_, keys, 3));
    std::vector<SnapshotFile> files;
    std::thread writer([&] { files = clients[0]->write_snapshot(directory()); });
    for (std::uint64_t n = 0; n < 20; ++n) {
      put(*clients[0], 3, keys, some_rows(tables_, keys, 4 + n));
    }
    writer.join();
    EXPECT_EQ(rows_in(files), expected);

    EXPECT_EQ(fetch(*clients[0], keys), some_rows(tables_, keys, 23));
    clients[0]->begin_snapshot(10);
    expected.clear();
    for (const Row& row : some_rows(tables_, keys, 23)) {
      expected[header_in(row).key] = floats_in(row);
    }
    EXPECT_EQ(rows_in(clients[0]->write_snapshot(directory())), expected);
  }
}

TEST_F(ShardRows, PutsOverConnectionsThatBreakAreAppliedOnce) {
  const auto servers = serve(2, {.num_workers = 2});
  auto clients = clients_of({.num_shards = 2, .job = job_of(1, 0, false)});
  ShardClient& client = *clients[0];
  constexpr std::size_t kThreads = 3;
  constexpr std::uint32_t kPuts = 150;
  std::vector<Key> keys_of[kThreads];
  for (const Key key : all_keys(300)) keys_of[id_of(key) % kThreads].push_back(key);
  std::atomic<bool> done = false;
  std::thread breaker([&] {
    const RandomStream random{4};
    for (std::uint64_t n = 0; !done; ++n) {
      client.close_connections();
      const auto until =
          std::chrono::steady_clock::now() + std::chrono::microseconds(random.below(n, 20'000));
      while (!done && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    }
  });
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      errors[i] = message_of([&] {
        for (std::uint32_t n = 1; n <= kPuts; ++n) {
          put(client, n, keys_of[i], some_rows(tables_, keys_of[i], n));
          // Nothing older arrives after it.
          for (const Row& row : fetch(client, keys_of[i])) {
            ASSERT_EQ(floats_in(row), floats_in(some_row(tables_, header_in(row).key, n)));
          }
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  breaker.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_GT(client.num_reconnects(), 3);
  for (const auto& keys : keys_of) {
    EXPECT_EQ(fetch(client, keys), some_rows(tables_, keys, kPuts));
  }
}

}  // namespace
}  // namespace satrap::ps
