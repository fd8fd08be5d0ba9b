// Shards and ranks in one process, over the real transport, against a map of rows.

#include <mutex>

#include "tests/ps/shard_fixture.h"

namespace satrap::ps {
namespace {

class ManyShards : public ShardTest {
 protected:
  /// Trains, and compares all that is read with what one process would have read.
  void expect_same_bits(const Cluster& cluster) {
    SCOPED_TRACE(concat(cluster.num_shards, " shards, ", cluster.num_workers, " workers, ",
                        cluster.job.num_ranks, " ranks, staleness ", cluster.job.staleness));
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
                    std::max<std::int64_t>(0, step - 1 - cluster.job.staleness);
                const std::lock_guard lock(mutex);
                num_wrong += rows.read_version() != version;
                for (std::size_t u = 0; u < keys.size(); ++u, ++num_rows) {
                  num_wrong += weights_at(rows, u, keys[u]) !=
                               oracle.weights(versions[static_cast<std::size_t>(version)], keys[u]);
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
        expect_same_bits({.num_shards = num_shards,
                          .num_workers = num_workers,
                          .job = job_of(num_ranks, 0, false)});
        for (const std::int64_t staleness : {1, 4}) {
          expect_same_bits({.num_shards = num_shards,
                            .num_workers = num_workers,
                            .job = job_of(num_ranks, staleness, true)});
        }
      }
    }
  }
}

}  // namespace
}  // namespace satrap::ps
