#include <benchmark/benchmark.h>

#include "satrap/data/synthetic.h"
#include "satrap/data/synthetic_tsv.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kRows = 8192;

/// Rows of Criteo's shape on one thread. Target: 500,000 a second.
void generate_rows(benchmark::State& state) {
  SyntheticConfig config;
  config.scale = static_cast<double>(state.range(0));
  config.drift = static_cast<double>(state.range(1)) / 100.0;
  const SyntheticGenerator generator(config);
  RowBlock block;
  std::int64_t row = 0;
  for (auto _ : state) {
    generator.generate(row, kRows, block);
    row += kRows;
  }
  state.SetItemsProcessed(row);
}
BENCHMARK(generate_rows)
    ->ArgNames({"scale", "drift%"})
    ->Args({1, 0})
    ->Args({1, 30})
    ->Args({1000, 0})
    ->Unit(benchmark::kMillisecond);

/// The teacher's calibration, which every start with format synthetic waits for.
void build_generator(benchmark::State& state) {
  for (auto _ : state) {
    const SyntheticGenerator generator{SyntheticConfig{}};
    RowBlock block;
    generator.generate(0, 1, block);
    benchmark::DoNotOptimize(block);
  }
}
BENCHMARK(build_generator)->Unit(benchmark::kMillisecond);

/// Formats rows that have been generated.
void format_rows(benchmark::State& state) {
  const SyntheticGenerator generator(SyntheticConfig{});
  RowBlock block;
  generator.generate(0, kRows, block);
  std::string text;
  for (auto _ : state) {
    text.clear();
    append_criteo_tsv(generator, block, text);
  }
  state.SetItemsProcessed(state.iterations() * kRows);
  state.SetBytesProcessed(state.iterations() * std::ssize(text));
}
BENCHMARK(format_rows)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace satrap::data
