// Tables: lookups of known keys, whole rows to and from a cache, insertion, the longest stall of a
// growing table, bytes per row, and the costs of eviction, of a snapshot, and of new memory alone.

#include <algorithm>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <time.h>

#include "satrap/core/thread_pool.h"
#include "satrap/table/table.h"
#include "satrap/table/table_row_store.h"
#include "satrap/table/table_snapshot.h"

namespace satrap::table {
namespace {

/// CPU time of this thread: other processes on the machine do not count.
double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

TableSpec spec_of(std::int64_t dim) {
  TableSpec spec;
  spec.name = "t";
  spec.dim = dim;
  return spec;
}

std::vector<Key> sorted_keys(std::mt19937_64& random, std::int64_t count, std::uint64_t num_ids) {
  std::vector<Key> keys;
  for (std::int64_t i = 0; i < count; ++i) keys.push_back(make_key(TableId{0}, random() % num_ids));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void fill(Table& table, std::uint64_t num_rows) {
  std::vector<Key> keys;
  for (std::uint64_t id = 0; id < num_rows; ++id) keys.push_back(make_key(TableId{0}, id));
  std::vector<RowPointer> rows(keys.size());
  table.find_or_insert(keys, rows);
}

/// Batches of sorted unique keys that all exist.
void find_known(benchmark::State& state) {
  constexpr std::uint64_t kRows = 2'000'000;
  Table table(spec_of(state.range(0)), 1);
  fill(table, kRows);
  std::mt19937_64 random(1);
  std::vector<std::vector<Key>> batches;
  for (int i = 0; i < 32; ++i) batches.push_back(sorted_keys(random, state.range(1), kRows));
  std::vector<RowPointer> rows(static_cast<std::size_t>(state.range(1)));
  std::size_t next = 0;
  std::int64_t keys = 0;
  for (auto _ : state) {
    const auto& batch = batches[next++ % batches.size()];
    table.find_or_insert(batch, std::span(rows).first(batch.size()));
    keys += std::ssize(batch);
  }
  state.SetItemsProcessed(keys);
}
BENCHMARK(find_known)->ArgNames({"dim", "keys"})->ArgsProduct({{16, 64}, {1024, 16384, 262144}});

/// What a cache asks of tables in each step: rows that exist go out, others come back.
void fetch_and_put(benchmark::State& state) {
  constexpr std::uint64_t kRows = 2'000'000;
  Table table(spec_of(64), 1);
  fill(table, kRows);
  ThreadPool pool(state.range(0));
  TableRowStore store({&table}, pool);
  std::mt19937_64 random(1);
  std::vector<std::vector<Key>> batches;
  for (int i = 0; i < 32; ++i) batches.push_back(sorted_keys(random, state.range(1), kRows));
  const auto row_bytes = static_cast<std::size_t>(table.row_bytes());
  std::vector<std::byte> memory(static_cast<std::size_t>(state.range(1)) * row_bytes);
  std::vector<std::byte*> to;
  for (std::int64_t i = 0; i < state.range(1); ++i) {
    to.push_back(memory.data() + static_cast<std::size_t>(i) * row_bytes);
  }
  std::size_t next = 0;
  std::int64_t keys = 0;
  for (auto _ : state) {
    const auto& batch = batches[next++ % batches.size()];
    store.fetch(batch, std::span(to).first(batch.size()));
    const std::vector<const std::byte*> from(to.begin(), to.begin() + std::ssize(batch));
    store.put(1, batch, from);
    keys += std::ssize(batch);
  }
  state.SetItemsProcessed(keys);
}
BENCHMARK(fetch_and_put)
    ->ArgNames({"threads", "keys"})
    ->ArgsProduct({{1, 2, 4, 8}, {1024, 8192}})
    ->UseRealTime();

/// The least cost of growth, and the longest stall that it may cause: a plain loop over memory that
/// the system has not provided yet, 2 MiB at a time; huge: in huge pages.
void touch_new_memory(benchmark::State& state) {
  constexpr std::size_t kBytes = std::size_t{8} << 30, kStep = std::size_t{2} << 20;
  std::vector<double> steps_ms;
  for (auto _ : state) {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return state.SkipWithError("mmap failed");
    if (state.range(0) == 1) madvise(memory, kBytes, MADV_HUGEPAGE);
    auto* const bytes = static_cast<volatile std::byte*>(memory);
    for (std::size_t step = 0; step < kBytes; step += kStep) {
      const double begin_ms = thread_ms();
      for (std::size_t page = 0; page < kStep; page += 4096) bytes[step + page] = std::byte{1};
      steps_ms.push_back(thread_ms() - begin_ms);
    }
    munmap(memory, kBytes);
  }
  std::ranges::sort(steps_ms);
  state.counters["median_ms"] = steps_ms[steps_ms.size() / 2];
  state.counters["p99_ms"] = steps_ms[steps_ms.size() * 99 / 100];
  state.counters["longest_ms"] = steps_ms.back();
}
BENCHMARK(touch_new_memory)->ArgName("huge")->Arg(0)->Arg(1)->Iterations(4);

/// Grows a table from nothing in steps of 2048 new ids; the longest step is the stall that growth
/// may cause.
void grow(benchmark::State& state) {
  const std::int64_t num_rows = state.range(1);
  double longest_ms = 0, bytes_per_row = 0, stride = 0;
  for (auto _ : state) {
    Table table(spec_of(state.range(0)), 1);
    std::vector<Key> keys(2048);
    std::vector<RowPointer> rows(keys.size());
    for (std::int64_t first = 0; first < num_rows; first += std::ssize(keys)) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        keys[i] = make_key(TableId{0}, static_cast<std::uint64_t>(first) + i);
      }
      std::sort(keys.begin(), keys.end());
      const double begin_ms = thread_ms();
      table.find_or_insert(keys, rows);
      longest_ms = std::max(longest_ms, thread_ms() - begin_ms);
    }
    bytes_per_row =
        static_cast<double>(table.resident_bytes()) / static_cast<double>(table.num_rows());
    stride = static_cast<double>(table.row_bytes());
  }
  state.SetItemsProcessed(state.iterations() * num_rows);
  state.counters["longest_step_cpu_ms"] = longest_ms;
  state.counters["bytes_per_row"] = bytes_per_row;
  state.counters["of_stride+16"] = bytes_per_row / (stride + 16);
}
BENCHMARK(grow)
    ->ArgNames({"dim", "rows"})
    ->Args({16, 1 << 20})
    ->Args({16, 50'000'000})
    ->Args({64, 1 << 20})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

/// Steps of 4096 new ids in a table of limited capacity: until it is nearly full, and from then on.
void go(benchmark::State& state) {
  TableSpec spec = spec_of(16);
  spec.limits = {.capacity_rows = state.range(0), .pinned_steps = 10};
  double below_ms = 0, at_ms = 0, longest_below_ms = 0, longest_at_ms = 0, bytes_per_row = 0;
  for (auto _ : state) {
    Table table(spec, 1);
    std::vector<Key> keys(4096);
    std::vector<RowPointer> rows(keys.size());
    const std::int64_t num_steps = 2 * state.range(0) / std::ssize(keys);
    const std::int64_t num_below = num_steps * 2 / 5;
    std::uint64_t next = 0;
    for (std::int64_t step = 1; step <= num_steps; ++step) {
      for (Key& key : keys) key = make_key(TableId{0}, next++);
      std::sort(keys.begin(), keys.end());
      const double begin_ms = thread_ms();
      for (std::int64_t p = 0; p < kPartitions; ++p) table.begin_step(p, step);
      table.find_or_insert(keys, rows, step);
      const double step_ms = thread_ms() - begin_ms;
      const bool is_below = step <= num_below;
      (is_below ? below_ms : at_ms) += step_ms;
      double& longest_ms = is_below ? longest_below_ms : longest_at_ms;
      longest_ms = std::max(longest_ms, step_ms);
    }
    below_ms /= static_cast<double>(num_below);
    at_ms /= static_cast<double>(num_steps - num_below);
    bytes_per_row =
        static_cast<double>(table.resident_bytes()) / static_cast<double>(table.num_rows());
  }
  state.counters["below_capacity_ms"] = below_ms;
  state.counters["at_capacity_ms"] = at_ms;
  state.counters["longest_below_ms"] = longest_below_ms;
  state.counters["longest_at_ms"] = longest_at_ms;
  state.counters["bytes_per_row"] = bytes_per_row;
}
BENCHMARK(go)
    ->ArgNames({"capacity"})
    ->Args({1 << 20})
    ->Args({10'000'000})
    ->Args({50'000'000})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

/// Beginning a snapshot (the pause of training), and reading all rows for it.
void snapshot(benchmark::State& state) {
  Table table(spec_of(16), 1);
  constexpr std::uint64_t kRows = 4'000'000;
  fill(table, kRows);
  std::vector<Key> keys;
  for (std::uint64_t id = 0; id < kRows; ++id) keys.push_back(make_key(TableId{0}, id));
  std::sort(keys.begin(), keys.end());
  std::vector<RowPointer> rows(keys.size());
  table.find_or_insert(keys, rows);
  for (std::size_t begin = 0; begin < keys.size();) {
    const std::int64_t partition = partition_of(keys[begin]);
    std::size_t end = begin;
    while (end < keys.size() && partition_of(keys[end]) == partition) ++end;
    table.update_partition(partition, 1, std::span(rows).subspan(begin, end - begin),
                           [](auto, auto) {});
    begin = end;
  }
  double begin_ms = 0;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const double before_ms = thread_ms();
    TableSnapshot taken(table, 1);
    begin_ms = std::max(begin_ms, thread_ms() - before_ms);
    taken.write([&](std::span<const std::byte> block) { bytes += std::ssize(block); });
  }
  state.SetBytesProcessed(bytes);
  state.counters["begin_cpu_ms"] = begin_ms;
}
BENCHMARK(snapshot)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace satrap::table
