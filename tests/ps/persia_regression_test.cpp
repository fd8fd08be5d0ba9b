// Bugs of PERSIA's parameter server (github.com/PersiaML/PERSIA), each with a test of our own.

#include <cmath>

#include "satrap/core/file.h"
#include "tests/ps/shard_fixture.h"

namespace satrap::ps {
namespace {

class PersiaRegression : public ShardTest {
 protected:
  /// One step of one rank: the gradient of every weight of key u is gradients[u].
  void step(ShardClient& client,
            std::int64_t number,
            const std::vector<Key>& keys,
            const std::vector<float>& gradients) {
    StepRows rows;
    client.pull(number, keys, rows);
    client.wait(rows);
    client.prepare_push(rows);
    for (std::size_t u = 0; u < keys.size(); ++u) {
      const auto dim = tables_[static_cast<std::size_t>(table_of(keys[u]))].dim;
      std::fill_n(rows.gradients()[u], dim, gradients[u]);
    }
    client.push(number, rows, false);
    client.wait_pushed(rows);
    client.wait_applied(number);
  }

  std::vector<float> weights_of_key(ShardClient& client, Key key) {
    StepRows rows;
    client.lookup({&key, 1}, rows);
    return weights_at(rows, 0, key);
  }
};

TEST_F(PersiaRegression, AMissingKeyConsumesItsOwnGradientAndNobodyElses) {
  // In PERSIA, a key without a row did not advance the gradients: all later keys got their
  // neighbour's.
  for (table::TableSpec& table : tables_) {
    table.optimizer = {.type = RowOptimizerType::kSgd, .lr = 1.0F};
    table.schedule = {};
    table.init = {.type = table::InitType::kConstant, .scale = 0.0F};
  }
  const auto servers = serve(2, {.num_workers = 2});
  auto clients = clients_of({.num_shards = 2, .job = job_of(2, 0, false)});
  const std::vector<Key> all = all_keys(20);
  std::vector<Key> known;
  for (std::size_t u = 0; u < all.size(); u += 2) known.push_back(all[u]);
  std::vector<float> gradients;
  for (std::size_t u = 0; u < all.size(); ++u) gradients.push_back(static_cast<float>(u));
  // Every second key has a row; then rank 0 sends all keys, rank 1 those that have no row.
  StepRows rows[2];
  for (std::int64_t number = 1; number <= 2; ++number) {
    std::vector<Key> keys[2] = {number == 1 ? known : all, {}};
    if (number == 2) {
      for (std::size_t u = 1; u < all.size(); u += 2) keys[1].push_back(all[u]);
    }
    for (std::size_t r = 0; r < 2; ++r) {
      clients[r]->pull(number, keys[r], rows[r]);
      clients[r]->wait(rows[r]);
      clients[r]->prepare_push(rows[r]);
      for (std::size_t u = 0; u < keys[r].size(); ++u) {
        const auto dim = tables_[static_cast<std::size_t>(table_of(keys[r][u]))].dim;
        const auto at = std::find(all.begin(), all.end(), keys[r][u]) - all.begin();
        std::fill_n(rows[r].gradients()[u], dim, gradients[static_cast<std::size_t>(at)]);
      }
      clients[r]->push(number, rows[r], false);
      clients[r]->wait_pushed(rows[r]);
    }
  }
  clients[0]->wait_applied(2);
  // Each key has received its own gradient twice: in both steps, or from both ranks.
  clients[0]->lookup(all, rows[0]);
  for (std::size_t u = 0; u < all.size(); ++u) {
    for (const float weight : weights_at(rows[0], u, all[u])) {
      ASSERT_EQ(weight, -2.0F * static_cast<float>(u));
    }
  }
}

TEST_F(PersiaRegression, TheFirstStepOfAdamIsTheFirstPowerOfItsBetas) {
  // In PERSIA, the first step used the squares. With bias correction it is lr * sign(g).
  tables_[1].schedule = {};
  const auto servers = serve(1);
  auto clients = clients_of({.job = job_of(1, 0, false)});
  const Key key = make_key(TableId{1}, 3);
  const std::vector<float> before = weights_of_key(*clients[0], key);
  step(*clients[0], 1, {key}, {0.25F});
  const std::vector<float> after = weights_of_key(*clients[0], key);
  for (std::size_t d = 0; d < before.size(); ++d) {
    EXPECT_NEAR(before[d] - after[d], tables_[1].optimizer.lr, 1e-6);
  }
}

TEST_F(PersiaRegression, ThePowersOfAdamGoOnAfterALoad) {
  tables_[1].schedule = {};
  const auto servers = serve(1);
  auto clients = clients_of({.job = job_of(1, 0, false)});
  const Key key = make_key(TableId{1}, 3);
  for (std::int64_t number = 1; number <= 3; ++number) step(*clients[0], number, {key}, {0.25F});
  clients[0]->begin_snapshot(3);
  ShardJob resumed{.session = 9, .first_step = 4};
  for (const SnapshotFile& file : clients[0]->write_snapshot(folder_.path())) {
    resumed.row_files.push_back(
        {folder_.path() + "/" + file.name, file.table, file.row_bytes, file.bytes, file.xxh3});
  }
  step(*clients[0], 4, {key}, {-1.0F});
  const std::vector<float> undisturbed = weights_of_key(*clients[0], key);
  clients[0]->begin(resumed);
  step(*clients[0], 4, {key}, {-1.0F});
  EXPECT_EQ(weights_of_key(*clients[0], key), undisturbed);
}

TEST_F(PersiaRegression, JoiningAgainResetsNothing) {
  // In PERSIA, every rank that entered registered the optimizer anew.
  const Oracle oracle(tables_);
  const auto servers = serve(2);
  Cluster cluster{.num_shards = 2, .job = job_of(2, 0, true)};
  auto clients = clients_of(cluster);
  std::atomic<bool> done = false;
  std::thread joiner([&] {
    while (!done) {
      const auto late = client(1, 2);
      late->join(cluster.job.session);
      late->join(cluster.job.session);
    }
  });
  train_all(clients, cluster);
  done = true;
  joiner.join();
  clients[0]->wait_applied(cluster.num_steps);
  expect_rows(*clients[0], oracle, expected_rows(oracle, cluster).back(), cluster.num_ids);
}

TEST_F(PersiaRegression, EvaluationBesideTrainingChangesNoHyperparameter) {
  // In PERSIA, an evaluation context configured the servers with defaults in mid-training.
  const Oracle oracle(tables_);
  const auto servers = serve(2);
  Cluster cluster{.num_shards = 2, .job = job_of(1, 0, true), .num_steps = 60};
  auto clients = clients_of(cluster);
  std::vector<table::TableSpec> defaults = tables_;
  for (table::TableSpec& table : defaults) table.optimizer = {};
  std::atomic<bool> done = false;
  std::thread evaluation([&] {
    const auto other = ShardClient::create(client_end_, store_, defaults, kSeed, {.num_shards = 2});
    EXPECT_THAT(message_of([&] { other->join(cluster.job.session); }),
                testing::HasSubstr("another configuration"));
    const std::vector<Key> keys = all_keys(100);
    StepRows rows;
    while (!done) clients[0]->lookup(keys, rows);
  });
  train(*clients[0], cluster, 0);
  done = true;
  evaluation.join();
  clients[0]->wait_applied(cluster.num_steps);
  expect_rows(*clients[0], oracle, expected_rows(oracle, cluster).back(), cluster.num_ids);
}

TEST_F(PersiaRegression, FewerFilesThanWorkersLoad) {
  // In PERSIA, dividing the files among more workers than files panicked.
  const Oracle oracle(tables_);
  Cluster cluster{.job = job_of(1, 0, false), .num_steps = 10};
  ShardJob resumed{.session = 9, .first_step = 11};
  {
    const auto servers = serve(1);
    auto clients = clients_of(cluster);
    train(*clients[0], cluster, 0);
    clients[0]->wait_applied(10);
    clients[0]->begin_snapshot(10);
    for (const SnapshotFile& file : clients[0]->write_snapshot(folder_.path())) {
      resumed.row_files.push_back(
          {folder_.path() + "/" + file.name, file.table, file.row_bytes, file.bytes, file.xxh3});
    }
  }
  Oracle::Rows expected = expected_rows(oracle, cluster).back();
  for (std::size_t num_files : {3U, 1U, 0U}) {
    resumed.row_files.resize(num_files);
    ++resumed.session;
    std::erase_if(expected, [&](const auto& row) {
      return static_cast<std::size_t>(table_of(row.first)) >= num_files;
    });
    const auto servers = serve(3, {.num_workers = 8});
    const auto loaded = client(0, 3);
    loaded->begin(resumed);
    expect_rows(*loaded, oracle, expected, cluster.num_ids);
  }
}

}  // namespace
}  // namespace satrap::ps
