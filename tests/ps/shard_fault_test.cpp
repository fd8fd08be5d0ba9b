// Faults of connections, shards and updates, and other starts of the job.

#include <atomic>
#include <mutex>
#include <new>

#include "tests/ps/shard_fixture.h"

namespace satrap::ps {
namespace {

using testing::Test;

class ShardFaults : public ShardTest {
 protected:
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(ShardFaults, BrokenConnectionsLoseAndRepeatNoPush) {
  for (const bool deterministic : {true, false}) {
    Cluster cluster{
        .num_shards = 2, .job = job_of(2, deterministic ? 2 : 0, deterministic), .num_steps = 150};
    cluster.job.session = deterministic ? 5 : 6;
    const Oracle oracle(tables_);
    const auto servers = serve(2, {.num_workers = 2});
    auto clients = clients_of(cluster);
    std::atomic<bool> done = false;
    std::thread breaker([&] {
      const RandomStream random{3};
      for (std::uint64_t n = 0; !done; ++n) {
        clients[random.below(n, 2)]->close_connections();
        const auto until = std::chrono::steady_clock::now() +
                           std::chrono::microseconds(random.below(n + 1000, 20'000));
        while (!done && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      }
    });
    train_all(clients, cluster);
    done = true;
    breaker.join();
    clients[0]->wait_applied(cluster.num_steps);
    expect_rows(*clients[0], oracle, expected_rows(oracle, cluster).back(), cluster.num_ids);
    EXPECT_GT(clients[0]->num_reconnects() + clients[1]->num_reconnects(), 3);
  }
}

TEST_F(ShardFaults, AShardThatIsStartedAgainSaysThatItsRowsAreGone) {
  auto servers = serve(2);
  Cluster cluster{.num_shards = 2, .job = job_of(1, 0, false), .num_steps = 5};
  auto clients = clients_of(cluster);
  train(*clients[0], cluster, 0);
  servers[1].reset();
  servers[1] = std::make_unique<ShardServer>(server_end_, *store_, tables_, kSeed,
                                             ShardServerOptions{.shard = 1, .num_shards = 2});
  const std::string message = message_of([&] { clients[0]->wait_applied(5); });
  EXPECT_TRUE(has(message, "shard 1 has no job: it was restarted")) << message;
  // A new start of the job continues.
  cluster.job.session = 6;
  clients[0]->begin(cluster.job);
  train(*clients[0], cluster, 0);
  clients[0]->wait_applied(5);
}

TEST_F(ShardFaults, ASecondProcessForAShardIsRefusedWhileTheFirstLives) {
  const auto server = [&](std::int64_t shard, std::int64_t num_shards) {
    return std::make_unique<ShardServer>(
        server_end_, *store_, tables_, kSeed,
        ShardServerOptions{.shard = shard, .num_shards = num_shards});
  };
  auto first = server(0, 2);
  const std::string address = first->address();
  EXPECT_EQ(message_of([&] { server(0, 2); }),
            concat("shard 0 of 2 is served at ", address,
                   " already, by another process of this job: start each shard once, or give this "
                   "one another --shard"));
  EXPECT_NO_THROW(server(1, 2));
  first.reset();
  EXPECT_NE(server(0, 2)->address(), "") << "one that has ended is replaced";
}

TEST_F(ShardFaults, ANewStartOfTheJobEndsTheOneBefore) {
  const auto servers = serve(1);
  Cluster cluster{.job = job_of(2, 0, false), .num_steps = 20};
  auto clients = clients_of(cluster);
  StepRows rows, waiting;
  clients[0]->pull(1, keys_of_step(0, 1, 10), rows);
  clients[0]->wait(rows);
  clients[0]->push(1, rows, true);
  clients[0]->wait_pushed(rows);
  clients[0]->pull(2, keys_of_step(0, 2, 10), waiting);  // waits for rank 1, which never pushes
  const auto next = client(0, 1);
  const Cluster again{.job = {.session = 77}, .num_steps = 20};
  next->begin(again.job);
  const std::string message = message_of([&] { clients[0]->wait(waiting); });
  EXPECT_TRUE(has(message, "another start of the job")) << message;
  EXPECT_TRUE(has(message_of([&] { clients[1]->pull(1, {}, rows), clients[1]->wait(rows); }),
                  "another start of the job"));
  EXPECT_TRUE(has(message_of([&] { clients[0]->begin(cluster.job); }), "has been replaced"));
  EXPECT_EQ(next->stats()[0].rows, 0);
  train(*next, again, 0);
  const Oracle oracle(tables_);
  next->wait_applied(20);
  expect_rows(*next, oracle, expected_rows(oracle, again).back(), again.num_ids);
}

TEST_F(ShardFaults, AnUpdateThatThrowsIsTheErrorOfEverybody) {
  std::atomic<std::int64_t> num_requests = 0;
  const auto servers = serve(1, {.num_workers = 2, .before_request = [&] {
                                   if (++num_requests == 41) throw std::bad_alloc();
                                 }});
  Cluster cluster{.job = job_of(3, 1, true), .num_steps = 1000};
  auto clients = clients_of(cluster);
  std::vector<std::thread> threads;
  std::vector<std::string> messages(3);
  for (std::size_t r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      messages[r] = message_of([&] { train(*clients[r], cluster, static_cast<std::int64_t>(r)); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& message : messages) EXPECT_TRUE(has(message, "bad_alloc")) << message;
  EXPECT_TRUE(has(message_of([&] { clients[0]->wait_applied(1000); }), "bad_alloc"));
  // The shard itself still works.
  cluster.job.session = 6;
  cluster.job.num_ranks = 1;
  cluster.num_steps = 10;
  clients[0]->begin(cluster.job);
  train(*clients[0], cluster, 0);
  clients[0]->wait_applied(10);
}

TEST_F(ShardFaults, AJobOfAnotherConfigurationIsRefusedByWhatDiffers) {
  const auto servers = serve(1);
  const auto message_with = [&](const std::function<void(std::vector<table::TableSpec>&)>& change,
                                std::uint64_t seed = kSeed) {
    std::vector<table::TableSpec> tables = three_tables();
    change(tables);
    const auto other = ShardClient::create(client_end_, store_, tables, seed, {});
    return message_of([&] { other->begin(job_of(1, 0, false)); });
  };
  EXPECT_EQ(message_with([](auto&) {}), "");
  std::string message = message_with([](auto& tables) { tables[1].dim = 8; });
  EXPECT_TRUE(has(message, "the rank has table 1 'site': dim 8")) << message;
  EXPECT_TRUE(has(message, "the shard has table 1 'site': dim 16")) << message;
  EXPECT_TRUE(
      has(message_with([](auto& t) { t[0].optimizer.lr = 0.3F; }), "table 0 'ad': lr 0.3; "));
  EXPECT_TRUE(has(message_with([](auto& t) { t[0].init.scale = 0.5F; }), "init scale 0.5; "));
  EXPECT_TRUE(has(message_with([](auto& t) { t[2].schedule.decay = RateDecay::kLinear; }),
                  "the shard has table 2 'user': decay constant"));
  EXPECT_TRUE(has(message_with([](auto& t) { t.pop_back(); }), "number of tables 2"));
  EXPECT_TRUE(has(message_with([](auto&) {}, 8), "the rank has seed 8; the shard has seed 7"));
  const auto good = client(0, 1);
  good->begin({.session = 9});
  const auto bad = ShardClient::create(client_end_, store_, {}, kSeed, {});
  EXPECT_TRUE(has(message_of([&] { bad->join(9); }), "number of tables 0"));
}

TEST_F(ShardFaults, AClientThatIsStoppedWaitsNoMore) {
  const auto servers = serve(1);
  auto clients = clients_of({.job = job_of(2, 0, false)});
  StepRows rows;
  clients[0]->pull(1, {}, rows);
  clients[0]->wait(rows);
  clients[0]->push(1, rows, true);
  clients[0]->wait_pushed(rows);
  std::string waited, pulled;
  StepRows next;
  clients[0]->pull(2, {}, next);
  std::thread pulls([&] { pulled = message_of([&] { clients[0]->wait(next); }); });
  std::thread waits([&] { waited = message_of([&] { clients[0]->wait_applied(1); }); });
  while (clients[1]->stats()[0].staleness_histogram[0] < 1) std::this_thread::yield();
  clients[0]->stop();
  pulls.join();
  waits.join();
  EXPECT_TRUE(has(pulled, "has ended")) << pulled;
  EXPECT_TRUE(has(waited, "has ended")) << waited;
  EXPECT_TRUE(has(message_of([&] { clients[0]->stats(); }), "has ended"));
  clients[1]->stats();
}

}  // namespace
}  // namespace satrap::ps
