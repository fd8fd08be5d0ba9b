// Shards and ranks in one process, over the real transport, compared with a map of rows.

#include <atomic>
#include <chrono>
#include <mutex>

#include "tests/ps/shard_fixture.h"
#include "tests/support/sanitized.h"

namespace satrap::ps {
namespace {

class ManyShards : public ShardTest {
 protected:
  /// Trains, and compares all reads with those of one process.
  void expect_same_bits(const Cluster& cluster) {
    SCOPED_TRACE(concat(cluster.num_shards, " shards, ", cluster.num_workers, " workers, ",
                        cluster.job.num_ranks, " ranks, staleness ", cluster.job.staleness.max()));
    const Oracle oracle(tables_);
    const std::vector<Oracle::Rows> versions = expected_rows(oracle, cluster);
    ShardServerOptions options;
    options.num_workers = cluster.num_workers;
    const auto servers = serve(cluster.num_shards, options);
    auto clients = clients_of(cluster);
    std::mutex mutex;
    std::int64_t num_wrong = 0, num_rows = 0;
    train_all(clients, cluster,
              [&](std::int64_t step, const StepRows& rows, const std::vector<Key>& keys) {
                const std::int64_t version =
                    std::max<std::int64_t>(0, cluster.job.staleness.oldest_version(step));
                const std::lock_guard lock(mutex);
                num_wrong += rows.read_version() != version;
                for (std::size_t u = 0; u < keys.size(); ++u, ++num_rows) {
                  num_wrong +=
                      weights_at(rows, u, keys[u]) !=
                      Oracle::sent(
                          cluster.encoding,
                          oracle.weights(versions[static_cast<std::size_t>(version)], keys[u]));
                }
              });
    EXPECT_EQ(num_wrong, 0) << "of " << num_rows;
    clients[0]->wait_applied(cluster.num_steps);
    expect_rows(*clients[0], oracle, versions.back(), cluster.num_ids + 5);
  }
};

TEST_F(ManyShards, OneRankAndOneShardEqualASequentialRun) {
  expect_same_bits({.job = job_of(1, 0, false)});
}

TEST_F(ManyShards, EveryDivisionOfTheWorkGivesTheSameBits) {
  for (const std::int64_t num_shards : {1, 2, 3}) {
    for (const std::int64_t num_workers : {1, 2, 3}) {
      for (const std::int64_t num_ranks : {1, 2, 3}) {
        // Every pair of two numbers.
        if (kSanitized && (num_shards + num_workers + num_ranks) % 3 != 0) continue;
        expect_same_bits({.num_shards = num_shards,
                          .num_workers = num_workers,
                          .job = job_of(num_ranks, 0, false)});
        for (const table::StalenessBound& staleness :
             {table::StalenessBound(1), table::StalenessBound(4), table::StalenessBound(4, 1.0)}) {
          expect_same_bits({.num_shards = num_shards,
                            .num_workers = num_workers,
                            .job = job_of(num_ranks, staleness, true)});
        }
      }
    }
  }
}

TEST_F(ManyShards, RowsOfSixteenBitsAreTheSameOnAnyShard) {
  tables_[0].weights = FloatType::kBf16;
  tables_[1].weights = FloatType::kFp16;
  for (const std::int64_t num_shards : {1, 3}) {
    for (const std::int64_t num_ranks : {1, 2}) {  // gradients in place, and merged
      expect_same_bits(
          {.num_shards = num_shards, .num_workers = 2, .job = job_of(num_ranks, 2, true)});
    }
  }
}

TEST_F(ManyShards, OfATableWithLimitsHaveTheSameRowsAnyPowerOfTwoOfThem) {
  for (table::TableSpec& table : tables_) table.limits = {.ttl_steps = 3, .pinned_steps = 3};
  tables_[1].limits = {.capacity_rows = 1, .ttl_steps = 8, .pinned_steps = 3};
  tables_[2].limits = {.ttl_steps = 20, .pinned_steps = 3, .admit_after = 2};
  const auto trained = [&](std::int64_t num_shards, std::int64_t num_workers) {
    Cluster cluster{.num_shards = num_shards,
                    .num_workers = num_workers,
                    .job = job_of(2, 2, true),
                    .num_steps = 60,
                    .num_ids = 300};
    cluster.skips = [](std::int64_t, std::int64_t step) { return step % 9 == 0; };
    const auto servers = serve(num_shards, {.num_workers = num_workers});
    auto clients = clients_of(cluster);
    train_all(clients, cluster);
    clients[0]->wait_applied(cluster.num_steps);
    std::int64_t num_rows = 0;
    for (const ShardStats& stats : clients[0]->stats()) num_rows += stats.rows;
    StepRows rows;
    const std::vector<Key> keys = all_keys(cluster.num_ids);
    clients[0]->lookup(keys, rows);
    std::vector<std::vector<float>> weights;
    for (std::size_t u = 0; u < keys.size(); ++u) weights.push_back(weights_at(rows, u, keys[u]));
    return std::pair{num_rows, weights};
  };
  const auto expected = trained(1, 1);
  EXPECT_GT(expected.first, 50);
  EXPECT_LT(expected.first, 600);
  EXPECT_EQ(trained(1, 3), expected);
  EXPECT_EQ(trained(2, 2), expected);
  EXPECT_EQ(trained(4, 1), expected);
}

TEST_F(ManyShards, HalfPrecisionOnTheWireRoundsWhatTravelsAndNothingElse) {
  for (const auto encoding : {FloatType::kBf16, FloatType::kFp16}) {
    for (const std::int64_t num_ranks : {1, 2}) {
      Cluster cluster{.num_shards = 2, .num_workers = 2, .job = job_of(num_ranks, 2, true)};
      cluster.encoding = encoding;
      const Oracle oracle(tables_);
      const std::vector<Oracle::Rows> versions = expected_rows(oracle, cluster);
      const auto servers = serve(2, {.num_workers = 2});
      auto clients = clients_of(cluster);
      train_all(clients, cluster);
      clients[0]->wait_applied(cluster.num_steps);
      const auto exact = client(0, 2);  // rows stay fp32
      exact->join(cluster.job.session);
      expect_rows(*exact, oracle, versions.back(), cluster.num_ids);
    }
  }
}

TEST_F(ManyShards, ASkippedPushCountsAndAddsNothing) {
  Cluster cluster{.num_shards = 2, .num_workers = 2, .job = job_of(3, 2, true)};
  cluster.skips = [](std::int64_t rank, std::int64_t step) {
    return step % 7 == 0 || (step % 3 == 0 && rank == 1);  // all of them, or one
  };
  expect_same_bits(cluster);
}

TEST_F(ManyShards, TheWorkersOfAShardMayBeAsManyAsItsPartitions) {
  expect_same_bits({.num_shards = 2, .num_workers = 64, .job = job_of(2, 1, true)});
}

TEST_F(ManyShards, APullCanWaitForNewerRowsThanTheBoundDemands) {
  const auto servers = serve(2);
  auto clients = clients_of({.num_shards = 2, .job = job_of(1, 4, false)});
  ShardClient& client = *clients[0];
  const std::vector<Key> keys = all_keys(20);
  StepRows first, second, third;
  client.pull(1, keys, first);
  client.wait(first);
  client.pull(2, keys, second, /*least_version=*/1);
  client.pull(3, keys, third);
  client.prepare_push(first);
  for (std::size_t u = 0; u < keys.size(); ++u) {
    const auto dim = tables_[static_cast<std::size_t>(table_of(keys[u]))].dim;
    std::fill_n(first.gradients()[u], dim, 1.0F);
  }
  client.push(1, first, false);
  client.wait(second);
  EXPECT_EQ(second.read_version(), 1);
  client.wait(third);
  EXPECT_EQ(third.read_version(), 1);  // though it asked for less
  client.wait_pushed(first);
}

TEST_F(ManyShards, AsyncAppliesEveryPushOnce) {
  // Gradients are whole numbers and the learning rate is 1/4: sums are exact in every order.
  for (table::TableSpec& table : tables_) {
    table.optimizer = {.type = RowOptimizerType::kSgd, .lr = 0.25F};
    table.schedule = {};
    table.init = {.type = table::InitType::kConstant, .scale = 1.0F};
  }
  constexpr std::int64_t kRanks = 3, kSteps = 200;
  const auto servers = serve(2, {.num_workers = 2});
  ShardJob job = job_of(kRanks, 0, false);
  job.async = true;
  auto clients = clients_of({.num_shards = 2, .job = job});
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      ShardClient& mine = *clients[static_cast<std::size_t>(rank)];
      StepRows rows;
      for (std::int64_t step = 1; step <= kSteps; ++step) {
        const std::vector<Key> keys = keys_of_step(rank, step, 20);
        mine.pull(step, keys, rows);
        mine.wait(rows);
        mine.prepare_push(rows);
        for (std::size_t u = 0; u < keys.size(); ++u) {
          const auto dim = tables_[static_cast<std::size_t>(table_of(keys[u]))].dim;
          std::fill_n(rows.gradients()[u], dim, static_cast<float>(rank + step % 5));
        }
        mine.push(step, rows, false);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  clients[0]->wait_applied(kSteps);
  std::map<Key, float> expected;
  for (const Key key : all_keys(20)) expected[key] = 1.0F;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      for (const Key key : keys_of_step(rank, step, 20)) {
        expected[key] -= 0.25F * static_cast<float>(rank + step % 5);
      }
    }
  }
  const std::vector<Key> keys = all_keys(20);
  StepRows rows;
  clients[1]->lookup(keys, rows);
  for (std::size_t u = 0; u < keys.size(); ++u) {
    for (const float weight : weights_at(rows, u, keys[u])) ASSERT_EQ(weight, expected[keys[u]]);
  }
  for (const ShardStats& stats : clients[0]->stats()) {
    EXPECT_EQ(stats.applied_step, kSteps);
    std::int64_t num_pulls = 0;
    for (const std::int64_t count : stats.staleness_histogram) num_pulls += count;
    EXPECT_EQ(num_pulls, kRanks * kSteps);
  }
}

TEST_F(ManyShards, ALookupCreatesNothingAndReadsWhatWouldBeThere) {
  const auto servers = serve(2);
  auto clients = clients_of({.num_shards = 2, .job = job_of(1, 0, false)});
  const Oracle oracle(tables_);
  expect_rows(*clients[0], oracle, {}, 50);
  for (const ShardStats& stats : clients[0]->stats()) EXPECT_EQ(stats.rows, 0);
  StepRows none;
  clients[0]->lookup({}, none);
  EXPECT_TRUE(none.weights().empty());
}

// ------------------------------------------------------------------------------------- the bound

class Bound : public ShardTest {
 protected:
  /// Trains two ranks over two shards with random delays; returns the histogram of the staleness
  /// that the clients saw.
  std::map<std::int64_t, std::int64_t> staleness_seen(std::int64_t staleness,
                                                      std::int64_t num_steps) {
    std::atomic<std::uint64_t> draws = 0;
    ShardServerOptions options;
    options.num_workers = 2;
    options.before_request = [&] {
      const RandomStream random{99};
      const std::uint64_t n = draws++;
      if (random.below(n, 8) != 0) return;
      const auto until = std::chrono::steady_clock::now() +
                         std::chrono::microseconds(random.below(n + 1'000'000, 300));
      while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    };
    const auto servers = serve(2, options);
    Cluster cluster{.num_shards = 2, .job = job_of(2, staleness, false), .num_steps = num_steps};
    cluster.job.session = 100 + static_cast<std::uint64_t>(staleness);
    auto clients = clients_of(cluster);
    std::mutex mutex;
    std::map<std::int64_t, std::int64_t> seen;
    train_all(clients, cluster,
              [&](std::int64_t step, const StepRows& rows, const std::vector<Key>&) {
                const std::lock_guard lock(mutex);
                ++seen[step - 1 - rows.read_version()];
              });
    clients[0]->wait_applied(num_steps);
    for (const ShardStats& stats : clients[0]->stats()) {
      EXPECT_EQ(std::ssize(stats.staleness_histogram), staleness + 1);
      std::int64_t sum = 0;
      for (const std::int64_t count : stats.staleness_histogram) sum += count;
      EXPECT_EQ(sum, 2 * num_steps);
    }
    return seen;
  }
};

TEST_F(Bound, HoldsForTenThousandStepsOverShardsThatAreSlowAtRandom) {
  constexpr std::int64_t kNumSteps = kSanitized ? 250 : 2500;
  for (const std::int64_t staleness : {0, 1, 4, 16}) {
    std::int64_t sum = 0;
    for (const auto& [seen, count] : staleness_seen(staleness, kNumSteps)) {
      EXPECT_GE(seen, 0);
      EXPECT_LE(seen, staleness);
      sum += count;
      RecordProperty(concat("tau_", staleness, "_seen_", seen), std::to_string(count));
    }
    EXPECT_EQ(sum, 2 * kNumSteps);
  }
}

TEST_F(Bound, IsPassedWhenItIsNotEnforced) {
  // Proof that the test above can fail: without the bound one rank runs ahead of the other.
  for (const std::int64_t staleness : {0, 1, 4, 16}) {
    const auto servers = serve(1, {.enforce_bound = false});
    Cluster cluster{.job = job_of(2, staleness, false)};
    auto clients = clients_of(cluster);
    std::int64_t largest = 0;
    StepRows rows;
    for (std::int64_t step = 1; step <= staleness + 2; ++step) {
      clients[0]->pull(step, keys_of_step(0, step, 10), rows);
      clients[0]->wait(rows);
      largest = std::max(largest, step - 1 - rows.read_version());
      clients[0]->push(step, rows, true);
      clients[0]->wait_pushed(rows);
    }
    EXPECT_EQ(largest, staleness + 1);
  }
}

TEST_F(Bound, APullBeyondItWaitsForTheOtherRank) {
  const auto servers = serve(1);
  auto clients = clients_of({.job = job_of(2, 1, false)});
  StepRows mine[3], others;
  for (std::int64_t step = 1; step <= 3; ++step) {
    clients[0]->pull(step, keys_of_step(0, step, 10), mine[step - 1]);
  }
  for (std::int64_t step = 1; step <= 2; ++step) {
    clients[0]->wait(mine[step - 1]);
    EXPECT_EQ(mine[step - 1].read_version(), 0);
    clients[0]->push(step, mine[step - 1], true);
    clients[0]->wait_pushed(mine[step - 1]);
  }
  EXPECT_EQ(clients[0]->stats()[0].applied_step, 0);
  EXPECT_FALSE(clients[0]->is_applied(1));
  clients[1]->pull(1, keys_of_step(1, 1, 10), others);
  clients[1]->wait(others);
  clients[1]->push(1, others, true);
  clients[1]->wait_pushed(others);
  clients[0]->wait(mine[2]);
  EXPECT_EQ(mine[2].read_version(), 1);
  EXPECT_TRUE(clients[0]->is_applied(1));
  EXPECT_FALSE(clients[0]->is_applied(2));
}

}  // namespace
}  // namespace satrap::ps
