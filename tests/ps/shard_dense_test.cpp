// Dense parameters on shards, in async mode.

#include "tests/ps/shard_fixture.h"

namespace satrap::ps {
namespace {

class ShardDense : public ShardTest {
 protected:
  static DenseVectors some_vectors(std::int64_t size) {
    DenseVectors values;
    const RandomStream random{5};
    for (std::int64_t i = 0; i < size; ++i) {
      values.parameters.push_back(random.uniform(static_cast<std::uint64_t>(i)));
    }
    values.first.resize(values.parameters.size());
    values.second.resize(values.parameters.size());
    return values;
  }

  static std::vector<float> gradient(std::int64_t size, std::int64_t step) {
    const RandomStream random{hash64(6, static_cast<std::uint64_t>(step))};
    std::vector<float> values;
    for (std::int64_t i = 0; i < size; ++i) {
      values.push_back(random.uniform(static_cast<std::uint64_t>(i)) - 0.5F);
    }
    return values;
  }

  /// Sends a gradient; returns the parameters after it.
  static std::vector<float> exchange(ShardClient& client,
                                     std::int64_t step,
                                     const std::vector<float>& gradient,
                                     float scale = 1.0F,
                                     double lr = 0.1) {
    std::vector<float> parameters(gradient.size());
    DenseExchange exchange;
    client.exchange_dense(step, gradient, scale, lr, exchange);
    client.wait_dense(exchange, parameters);
    return parameters;
  }

  static ShardJob async_job(std::int64_t num_ranks, std::uint64_t session = 5) {
    ShardJob job{.session = session, .num_ranks = num_ranks};
    job.async = true;
    return job;
  }
};

TEST_F(ShardDense, EveryOptimizerGivesTheBitsOfOneProcess) {
  constexpr std::int64_t kSize = 1001, kSteps = 12;
  std::uint64_t session = 10;
  for (const std::int64_t num_shards : {1, 3}) {
    const auto servers = serve(num_shards, {.num_workers = 2});
    for (const auto type : {DenseOptimizerType::kSgd, DenseOptimizerType::kAdagrad,
                            DenseOptimizerType::kAdam, DenseOptimizerType::kAdamW}) {
      DenseOptimizer optimizer{.type = type, .momentum = 0.5, .weight_decay = 0.01};
      DenseVectors expected = some_vectors(kSize);
      const auto only = client(0, num_shards);
      only->begin(async_job(1, ++session));
      only->put_dense(expected, optimizer);
      for (std::int64_t step = 1; step <= kSteps; ++step) {
        exchange(*only, step, gradient(kSize, step), 0.5F, 0.01);
        update_dense(optimizer, expected.parameters.data(), gradient(kSize, step).data(),
                     expected.first.data(), expected.second.data(), 0, kSize, 0.5F, 0.01,
                     expected.num_updates += 1.0);
      }
      const auto values = only->pull_dense_state(kSize);  // arrives after the pushes
      EXPECT_EQ(values.parameters, expected.parameters);
      EXPECT_EQ(values.first, expected.first);
      EXPECT_EQ(values.second, expected.second);
      EXPECT_EQ(values.num_updates, static_cast<double>(kSteps));

      // A checkpoint: with the state put into another start of the job, it continues with the same
      // bits.
      only->begin(async_job(1, ++session));
      only->put_dense(values, optimizer);
      const auto parameters = exchange(*only, kSteps + 1, gradient(kSize, 0), 1.0F, 0.01);
      update_dense(optimizer, expected.parameters.data(), gradient(kSize, 0).data(),
                   expected.first.data(), expected.second.data(), 0, kSize, 1.0F, 0.01,
                   expected.num_updates += 1.0);
      EXPECT_EQ(parameters, expected.parameters);
    }
  }
}

TEST_F(ShardDense, PushesOfAllRanksAreAppliedOnceOverConnectionsThatBreak) {
  // Gradients are whole numbers, the learning rate is 1/4: sums are exact in every order.
  constexpr std::int64_t kSize = 500, kSteps = 100, kRanks = 2;
  const auto servers = serve(2, {.num_workers = 2});
  auto clients = clients_of({.num_shards = 2, .job = async_job(kRanks)});
  DenseVectors zero{std::vector<float>(kSize), std::vector<float>(kSize),
                    std::vector<float>(kSize)};
  clients[0]->put_dense(zero, {.type = DenseOptimizerType::kSgd});
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kRanks);
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      ShardClient& mine = *clients[static_cast<std::size_t>(rank)];
      std::vector<float> parameters(kSize), values(kSize);
      std::vector<DenseExchange> exchanges(ShardClient::kMaxDenseExchanges);
      errors[static_cast<std::size_t>(rank)] = message_of([&] {
        for (std::int64_t step = 1; step <= kSteps; ++step) {
          DenseExchange& exchange = exchanges[static_cast<std::size_t>(step) % exchanges.size()];
          if (step > std::ssize(exchanges)) mine.wait_dense(exchange, parameters);
          for (std::size_t i = 0; i < kSize; ++i) {
            values[i] = static_cast<float>((rank + 1) * (step % 3) + static_cast<int>(i % 7));
          }
          if (step % 10 == 0) mine.close_connections();
          mine.exchange_dense(step, values, 1.0F, 0.25, exchange);
        }
        for (std::size_t i = 1; i <= exchanges.size(); ++i) {
          mine.wait_dense(exchanges[(kSteps + i) % exchanges.size()], parameters);
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  std::vector<float> expected(kSize);
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      for (std::size_t i = 0; i < kSize; ++i) {
        expected[i] -=
            0.25F * static_cast<float>((rank + 1) * (step % 3) + static_cast<int>(i % 7));
      }
    }
  }
  const auto values = clients[1]->pull_dense_state(kSize);
  EXPECT_EQ(values.parameters, expected);
  EXPECT_EQ(values.num_updates, static_cast<double>(kRanks * kSteps));
  EXPECT_GT(clients[0]->num_reconnects(), 3);
}

TEST_F(ShardDense, WhatIsOutOfPlaceIsRefused) {
  using testing::HasSubstr;
  const auto servers = serve(2);
  const auto only = client(0, 2);
  std::vector<float> parameters(10);
  only->begin({.session = 1});
  EXPECT_THAT(message_of([&] { only->put_dense(some_vectors(10), {}); }),
              HasSubstr("in async mode only"));
  only->begin(async_job(1, 2));
  EXPECT_THAT(message_of([&] { only->pull_dense_state(10); }),
              HasSubstr("no dense parameters yet"));
  EXPECT_THAT(message_of([&] { exchange(*only, 1, parameters); }),
              HasSubstr("no dense parameters yet"));
  only->put_dense(some_vectors(10), {});
  EXPECT_THAT(message_of([&] { only->put_dense(some_vectors(10), {}); }), HasSubstr("put once"));
  parameters.resize(12);
  EXPECT_THAT(message_of([&] { only->pull_dense_state(12); }), HasSubstr("other dense parameters"));
  EXPECT_THAT(message_of([&] { exchange(*only, 1, parameters); }),
              HasSubstr("a dense gradient of 6 floats, the shard has 5 parameters"));
  parameters.resize(10);
  exchange(*only, 1, parameters);
  only->begin(async_job(1, 3));
  only->put_dense({}, {});  // a model without parameters
  exchange(*only, 1, {});
}

}  // namespace
}  // namespace satrap::ps
