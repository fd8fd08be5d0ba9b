// Steps of one rank through client, transport (loopback) and shards, all in this process: keys
// pulled, gradients pushed and applied. A row is pulled and pushed once; cpu_ns_per_row is that of
// the whole process, both sides together. `embedded` does the same work on the tables in place.

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/resource.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/ps/shard_client.h"
#include "satrap/ps/shard_server.h"
#include "src/ps/row_work.h"
#include "tests/support/temporary_directory.h"

namespace satrap::ps {
namespace {

constexpr std::int64_t kTables = 26;
constexpr std::uint64_t kIdsPerTable = 50'000;
constexpr std::int64_t kStaleness = 4;
constexpr std::size_t kWindow = 4;  // pulls in flight

std::vector<table::TableSpec> tables_of(std::int64_t dim) {
  std::vector<table::TableSpec> tables(static_cast<std::size_t>(kTables));
  for (std::size_t t = 0; t < tables.size(); ++t) {
    tables[t].name = concat("table", t);
    tables[t].id = static_cast<TableId>(t);
    tables[t].dim = dim;
  }
  return tables;
}

/// Unique ascending keys of some steps.
std::vector<std::vector<Key>> batches_of(std::int64_t num_keys) {
  std::mt19937_64 random(1);
  std::vector<std::vector<Key>> batches(8);
  for (auto& batch : batches) {
    while (std::ssize(batch) < num_keys) {
      for (std::int64_t i = std::ssize(batch); i < num_keys; ++i) {
        const auto table = static_cast<TableId>(random() % kTables);
        batch.push_back(make_key(table, random() % kIdsPerTable));
      }
      std::sort(batch.begin(), batch.end());
      batch.erase(std::unique(batch.begin(), batch.end()), batch.end());
    }
  }
  return batches;
}

void report(benchmark::State& state, std::int64_t rows, double cpu_seconds) {
  state.SetItemsProcessed(rows);
  state.counters["cpu_ns_per_row"] = cpu_seconds * 1e9 / static_cast<double>(rows);
}

/// dim, keys per step, shards, encoding.
void through_shards(benchmark::State& state) {
  set_log_level(LogLevel::kWarning);
  const std::int64_t dim = state.range(0), num_shards = state.range(2);
  const auto batches = batches_of(state.range(1));
  const TemporaryDirectory folder;
  const auto store = std::make_shared<net::FileRendezvous>(folder.path());
  const net::Endpoint server_end({.token = "t"}), client_end({.token = "t"});
  std::vector<std::unique_ptr<ShardServer>> servers;
  for (std::int64_t s = 0; s < num_shards; ++s) {
    servers.push_back(
        std::make_unique<ShardServer>(server_end, *store, tables_of(dim), 1,
                                      ShardServerOptions{.shard = s, .num_shards = num_shards}));
  }
  const auto owned = ShardClient::create(
      client_end, store, tables_of(dim), 1,
      {.num_shards = num_shards, .encoding = static_cast<FloatType>(state.range(3))});
  ShardClient& client = *owned;
  client.begin({.session = 1, .staleness = kStaleness});

  std::vector<StepRows> rows(kWindow);
  std::int64_t pulled = 0, pushed = 0;
  const auto step = [&] {
    for (; pulled < pushed + static_cast<std::int64_t>(kWindow); ++pulled) {
      client.pull(pulled + 1, batches[static_cast<std::size_t>(pulled + 1) % batches.size()],
                  rows[static_cast<std::size_t>(pulled + 1) % kWindow]);
    }
    ++pushed;
    StepRows& mine = rows[static_cast<std::size_t>(pushed) % kWindow];
    client.wait(mine);
    client.prepare_push(mine);
    for (std::size_t u = 0; u < mine.weights().size(); ++u) {
      std::memcpy(mine.gradients()[u], mine.weights()[u],
                  static_cast<std::size_t>(dim) * sizeof(float));
    }
    client.push(pushed, mine, false);
    client.wait_pushed(mine);
    return std::ssize(mine.weights());
  };
  for (std::size_t i = 0; i < 2 * batches.size(); ++i) step();  // the rows exist
  std::int64_t num_rows = 0;
  const double before = cpu_seconds();
  for (auto _ : state) num_rows += step();
  client.wait_applied(pushed);
  report(state, num_rows, cpu_seconds() - before);
  for (; pushed < pulled; ++pushed)
    client.wait(rows[static_cast<std::size_t>(pushed + 1) % kWindow]);
}
BENCHMARK(through_shards)
    ->ArgNames({"dim", "keys", "shards", "encoding"})
    ->ArgsProduct({{16, 64}, {20'000}, {1, 2}, {0}})
    ->Args({16, 2'000, 1, 0})
    ->Args({16, 20'000, 1, 1})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// The work without shards: find the rows, copy the weights, run the optimizer.
void embedded(benchmark::State& state) {
  const std::int64_t dim = state.range(0);
  const auto batches = batches_of(state.range(1));
  std::vector<std::unique_ptr<table::Table>> tables;
  for (const table::TableSpec& spec : tables_of(dim))
    tables.push_back(std::make_unique<table::Table>(spec, 1));
  RowWork work;
  std::vector<table::RowPointer> rows(static_cast<std::size_t>(state.range(1)));
  std::vector<float> weights(rows.size() * static_cast<std::size_t>(dim));
  std::int64_t number = 0;
  const auto step = [&] {
    const std::vector<Key>& keys = batches[static_cast<std::size_t>(++number) % batches.size()];
    for (std::size_t begin = 0; begin < keys.size();) {
      std::size_t end = begin;
      while (end < keys.size() && table_of(keys[end]) == table_of(keys[begin])) ++end;
      table::Table& table = *tables[static_cast<std::size_t>(table_of(keys[begin]))];
      const auto mine = std::span(keys).subspan(begin, end - begin);
      const auto found = std::span(rows).subspan(begin, end - begin);
      auto* values =
          reinterpret_cast<std::byte*>(weights.data() + begin * static_cast<std::size_t>(dim));
      work.read(table, number, mine, found, FloatType::kFp32, values);
      const RowGradients gradients{mine, found, FloatType::kFp32, values};
      work.update(table, 1, {&gradients, 1}, number, number);
      begin = end;
    }
    return std::ssize(keys);
  };
  for (std::size_t i = 0; i < 2 * batches.size(); ++i) step();
  std::int64_t num_rows = 0;
  const double before = cpu_seconds();
  for (auto _ : state) num_rows += step();
  report(state, num_rows, cpu_seconds() - before);
}
BENCHMARK(embedded)
    ->ArgNames({"dim", "keys"})
    ->ArgsProduct({{16, 64}, {20'000}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace satrap::ps
