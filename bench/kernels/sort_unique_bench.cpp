// Sorting the keys of a batch: items per second by number of items and share of distinct keys.

#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "satrap/kernels/sort_unique.h"

namespace satrap {
namespace {

void sort_keys(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const auto num_ids = static_cast<std::uint64_t>(state.range(1));
  std::mt19937_64 random(1);
  std::vector<KeyOccurrence> original(size), items(size), scratch(size);
  for (std::size_t i = 0; i < size; ++i) {
    original[i] = {make_key(TableId{0}, random() % num_ids), static_cast<std::uint32_t>(i), 0};
  }
  for (auto _ : state) {
    items = original;
    sort_by_key(items, scratch);
    benchmark::DoNotOptimize(count_distinct(items, kIdBits - 6));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sort_keys)
    ->ArgNames({"items", "ids"})
    ->ArgsProduct({{256, 2048, 8192, 65536, 524288}, {4, 1000, 1'000'000'000}});

}  // namespace
}  // namespace satrap
