#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/float_codec.h"
#include "satrap/core/hash.h"
#include "satrap/kernels/row_update.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/net/net_error.h"
#include "satrap/ps/shard_client.h"
#include "satrap/ps/shard_server.h"
#include "satrap/table/sharding.h"
#include "tests/support/temporary_directory.h"
#include "tests/table/stored_weights.h"

namespace satrap::ps {

inline constexpr std::uint64_t kSeed = 7;

/// Three tables that differ in everything.
inline std::vector<table::TableSpec> three_tables() {
  std::vector<table::TableSpec> tables(3);
  tables[0].name = "ad";
  tables[0].dim = 4;
  tables[1].name = "site";
  tables[1].dim = 16;
  tables[1].optimizer.type = RowOptimizerType::kAdam;
  tables[1].schedule.warmup_steps = 5;
  tables[2].name = "user";
  tables[2].dim = 3;
  tables[2].optimizer.type = RowOptimizerType::kSgd;
  tables[2].optimizer.weight_decay = 0.01F;
  for (std::size_t t = 0; t < tables.size(); ++t) tables[t].id = static_cast<TableId>(t);
  return tables;
}

/// What a rank looks up in a step: ascending keys, some of them in every step, none at all in some
/// steps. A pure function.
inline std::vector<Key> keys_of_step(std::int64_t rank, std::int64_t step, std::uint64_t num_ids) {
  std::set<Key> keys;
  const RandomStream random{hash64(11, static_cast<std::uint64_t>(rank * 100'000 + step))};
  const std::uint64_t count = random.below(0, 40);
  for (std::uint64_t i = 1; i <= count; ++i) {
    const auto table = static_cast<TableId>(random.below(2 * i, 3));
    keys.insert(make_key(table, random.below(2 * i + 1, num_ids)));
  }
  return {keys.begin(), keys.end()};
}

/// The gradient that a rank finds for a row: depends on everything, on the weights it read too.
inline void gradient_of(std::int64_t rank,
                        std::int64_t step,
                        Key key,
                        const float* weights,
                        std::int64_t dim,
                        float* out) {
  const RandomStream random{hash64(static_cast<std::uint64_t>(rank),
                                   static_cast<std::uint64_t>(step),
                                   static_cast<std::uint64_t>(key))};
  for (std::int64_t d = 0; d < dim; ++d) {
    out[d] = 0.3F * weights[d] + random.uniform(static_cast<std::uint64_t>(d)) - 0.5F;
  }
}

/// All rows, one after the other, in a map: what the shards are compared with.
class Oracle {
 public:
  using Rows = std::map<Key, std::vector<float>>;  // weights, state

  explicit Oracle(std::vector<table::TableSpec> tables) : tables_(std::move(tables)) {}

  /// As it arrives: rounded as it is on the wire.
  static std::vector<float> sent(FloatType encoding, std::vector<float> values) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(encoding) * std::ssize(values)));
    encode_floats(encoding, values, bytes);
    decode_floats(encoding, bytes, values);
    return values;
  }

  const table::TableSpec& spec_of(Key key) const {
    return tables_[static_cast<std::size_t>(table_of(key))];
  }

  /// Weights and state as a row of fp32 has them behind its header.
  std::vector<float> initial(Key key) const {
    const table::TableSpec& spec = spec_of(key);
    const RowLayout layout = RowLayout::of(spec.dim, FloatType::kFp32, spec.optimizer.type);
    std::vector<float> row(static_cast<std::size_t>(layout.row_bytes) / sizeof(float) -
                           kHeaderFloats);
    std::vector<float> weights(static_cast<std::size_t>(spec.dim));
    spec.init.fill(table::RowInit::table_seed(kSeed, spec.name), key, weights);
    std::ranges::copy(stored(spec, kSeed, key, 0, weights), row.begin());
    spec.optimizer.initialize_state(row.data(), row.data() + layout.padded_dim, spec.dim);
    return row;
  }

  std::vector<float> weights(const Rows& rows, Key key) const {
    const auto found = rows.find(key);
    std::vector<float> row = found == rows.end() ? initial(key) : found->second;
    row.resize(static_cast<std::size_t>(spec_of(key).dim));
    return row;
  }

  using Sums = std::map<Key, std::vector<float>>;

  /// To be called in the order of the ranks.
  void add(Sums& sums, Key key, const std::vector<float>& gradient) const {
    const auto [at, is_new] = sums.try_emplace(key, gradient);
    if (is_new) return;
    for (std::size_t d = 0; d < gradient.size(); ++d) at->second[d] += gradient[d];
  }

  void apply(Rows& rows, const Sums& sums, std::int64_t step) const {
    for (const auto& [key, gradient] : sums) {
      const table::TableSpec& spec = spec_of(key);
      auto& row = rows.try_emplace(key, initial(key)).first->second;
      const RowStep row_step(spec.optimizer, spec.schedule.factor(step), step);
      with_optimizer(spec.optimizer.type, [&](auto type) {
        update_row<type()>(row_step, row.data(), row.data() + padded_dim(spec.dim), gradient.data(),
                           spec.dim);
      });
      const std::vector<float> weights(row.begin(), row.begin() + spec.dim);
      std::ranges::copy(stored(spec, kSeed, key, step, weights), row.begin());
    }
  }

  const std::vector<table::TableSpec>& tables() const { return tables_; }

 private:
  static constexpr std::size_t kHeaderFloats = sizeof(RowHeader) / sizeof(float);
  const std::vector<table::TableSpec> tables_;
};

/// What is to be done, and how it is divided among processes.
struct Cluster {
  std::int64_t num_shards = 1, num_workers = 1;
  ShardJob job = {};
  std::int64_t num_steps = 30;
  std::uint64_t num_ids = 30;
  FloatType encoding = FloatType::kFp32;
  std::function<bool(std::int64_t rank, std::int64_t step)> skips = {};
};

inline ShardJob job_of(std::int64_t num_ranks,
                       const table::StalenessBound& staleness,
                       bool deterministic) {
  ShardJob job;
  job.session = 5;
  job.num_ranks = num_ranks;
  job.staleness = staleness;
  job.deterministic = deterministic;
  return job;
}

/// E_first-1 ... E_last: the rows after each step, as one process would have them that reads as far
/// behind as it may.
inline std::vector<Oracle::Rows> expected_rows(const Oracle& oracle, const Cluster& cluster) {
  std::vector<Oracle::Rows> versions(1);
  for (std::int64_t step = 1; step <= cluster.num_steps; ++step) {
    const auto read = static_cast<std::size_t>(
        std::max<std::int64_t>(0, cluster.job.staleness.oldest_version(step)));
    Oracle::Sums sums;
    for (std::int64_t rank = 0; rank < cluster.job.num_ranks; ++rank) {
      if (cluster.skips && cluster.skips(rank, step)) continue;
      for (const Key key : keys_of_step(rank, step, cluster.num_ids)) {
        const std::vector<float> weights =
            Oracle::sent(cluster.encoding, oracle.weights(versions[read], key));
        std::vector<float> gradient(weights.size());
        gradient_of(rank, step, key, weights.data(), std::ssize(weights), gradient.data());
        oracle.add(sums, key, Oracle::sent(cluster.encoding, gradient));
      }
    }
    versions.push_back(versions.back());
    oracle.apply(versions.back(), sums, step);
  }
  return versions;
}

class ShardTest : public testing::Test {
 protected:
  ShardTest() : store_(std::make_shared<net::FileRendezvous>(folder_.path() + "/store")) {}

  static net::EndpointOptions endpoint_options() {
    net::EndpointOptions options;
    options.token = "secret";
    return options;
  }

  std::vector<std::unique_ptr<ShardServer>> serve(std::int64_t num_shards,
                                                  ShardServerOptions options = {}) {
    std::vector<std::unique_ptr<ShardServer>> servers;
    for (std::int64_t s = 0; s < num_shards; ++s) {
      options.shard = s;
      options.num_shards = num_shards;
      servers.push_back(
          std::make_unique<ShardServer>(server_end_, *store_, tables_, kSeed, options));
    }
    return servers;
  }

  std::unique_ptr<ShardClient> client(std::int64_t rank,
                                      std::int64_t num_shards,
                                      ShardClient::Options options = {}) {
    options.rank = rank;
    options.num_shards = num_shards;
    options.timeout_ms = std::min<std::int64_t>(options.timeout_ms, 60'000);
    return ShardClient::create(client_end_, store_, tables_, kSeed, options);
  }

  /// One rank's training: pulls ahead as far as it may, computes, pushes. Checks what it reads
  /// with `check(step, rows, keys)`.
  using Check = std::function<void(std::int64_t, const StepRows&, const std::vector<Key>&)>;
  void train(ShardClient& client,
             const Cluster& cluster,
             std::int64_t rank,
             const Check& check = {},
             const std::function<void(std::int64_t step)>& after_push = {}) {
    const std::int64_t window = std::min(client.max_pulls(), cluster.job.staleness.max() + 2);
    const std::int64_t slots = window + 1;  // the push before is still under way
    const std::int64_t first = cluster.job.first_step;
    std::vector<StepRows> rows(static_cast<std::size_t>(slots));
    std::vector<std::vector<Key>> keys(static_cast<std::size_t>(slots));
    std::int64_t pulled = first - 1, pushed = first - 1;
    for (std::int64_t step = first; step <= cluster.num_steps; ++step) {
      for (; pulled < std::min(cluster.num_steps, step + window - 1); ++pulled) {
        const auto slot = static_cast<std::size_t>((pulled + 1) % slots);
        keys[slot] = keys_of_step(rank, pulled + 1, cluster.num_ids);
        client.pull(pulled + 1, keys[slot], rows[slot]);
        if (pulled + 1 == cluster.num_steps) client.end_pulls(pulled + 1);
      }
      const auto slot = static_cast<std::size_t>(step % slots);
      client.wait(rows[slot]);
      if (check) check(step, rows[slot], keys[slot]);
      client.prepare_push(rows[slot]);
      for (std::size_t u = 0; u < keys[slot].size(); ++u) {
        const std::int64_t dim = tables_[static_cast<std::size_t>(table_of(keys[slot][u]))].dim;
        gradient_of(rank, step, keys[slot][u], rows[slot].weights()[u], dim,
                    rows[slot].gradients()[u]);
      }
      client.push(step, rows[slot], cluster.skips && cluster.skips(rank, step));
      // One more may be under way where no pull waits for it.
      const std::int64_t spare =
          cluster.job.staleness.max() > 0 && step < cluster.num_steps ? 1 : 0;
      for (; pushed < step - spare; ++pushed) {
        client.wait_pushed(rows[static_cast<std::size_t>((pushed + 1) % slots)]);
      }
      if (after_push) after_push(step);
    }
  }

  /// All ranks, a thread each.
  void train_all(std::vector<std::unique_ptr<ShardClient>>& clients,
                 const Cluster& cluster,
                 const Check& check = {}) {
    std::vector<std::thread> threads;
    std::vector<std::string> errors(clients.size());
    for (std::size_t r = 0; r < clients.size(); ++r) {
      threads.emplace_back([&, r] {
        try {
          train(*clients[r], cluster, static_cast<std::int64_t>(r), check);
        } catch (const std::exception& error) {
          errors[r] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }

  std::vector<std::unique_ptr<ShardClient>> clients_of(const Cluster& cluster,
                                                       ShardClient::Options options = {}) {
    std::vector<std::unique_ptr<ShardClient>> clients;
    options.encoding = cluster.encoding;
    for (std::int64_t r = 0; r < cluster.job.num_ranks; ++r) {
      clients.push_back(client(r, cluster.num_shards, options));
    }
    clients[0]->begin(cluster.job);
    for (std::size_t r = 1; r < clients.size(); ++r) clients[r]->join(cluster.job.session);
    return clients;
  }

  std::vector<Key> all_keys(std::uint64_t num_ids) const {
    std::set<Key> keys;
    for (const table::TableSpec& table : tables_) {
      for (std::uint64_t id = 0; id < num_ids; ++id) keys.insert(make_key(table.id, id));
    }
    return {keys.begin(), keys.end()};
  }

  std::vector<float> weights_at(const StepRows& rows, std::size_t u, Key key) const {
    const auto dim = static_cast<std::size_t>(tables_[static_cast<std::size_t>(table_of(key))].dim);
    return {rows.weights()[u], rows.weights()[u] + dim};
  }

  /// That the shards' rows are those, to the bit.
  void expect_rows(ShardClient& client,
                   const Oracle& oracle,
                   const Oracle::Rows& expected,
                   std::uint64_t num_ids) {
    const std::vector<Key> keys = all_keys(num_ids);
    StepRows rows;
    client.lookup(keys, rows);
    for (std::size_t u = 0; u < keys.size(); ++u) {
      ASSERT_EQ(weights_at(rows, u, keys[u]), oracle.weights(expected, keys[u]))
          << "id " << id_of(keys[u]) << " of table " << static_cast<int>(table_of(keys[u]));
    }
  }

  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  }

  TemporaryDirectory folder_;
  std::shared_ptr<net::FileRendezvous> store_;
  net::Endpoint server_end_{endpoint_options()};
  net::Endpoint client_end_{endpoint_options()};
  std::vector<table::TableSpec> tables_ = three_tables();
};

}  // namespace satrap::ps
