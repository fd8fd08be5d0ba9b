#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <benchmark/benchmark.h>

#include "satrap/core/float_type.h"
#include "satrap/kernels/row_optimizer.h"

/// The load of the benchmarks of device operations, and the axes on which they vary it.
namespace satrap::bench {

/// Numbers of a benchmark's arguments.
struct Axes {
  std::int64_t dim = 64;
  FloatType weights = FloatType::kFp32;
  RowOptimizerType optimizer = RowOptimizerType::kAdagrad;
  std::int64_t zipf_percent = 0;
  std::int64_t pooling = 5;  // ids per bag
  std::int64_t hit_percent = 100;
  std::int64_t load_percent = 90;  // of the cache's slots that are occupied
  std::int64_t cache_gb = 0;       // rows of the cache; 0: four times what a batch can need
  std::int64_t fetch_bytes = 0;    // the L2's granularity of reads from memory; 0: the device's own
  bool as_graph = false;           // work is captured once and queued as a graph
};

/// The reference load has 8192 examples of 40 features with 5 ids: 1.64 M ids. Other poolings keep
/// that number. With ids drawn uniformly from 590 000, about 553 000 are distinct.
/// $SATRAP_BENCH_ROWS makes all of it smaller in proportion, for programs without a GPU.
struct Load {
  std::int64_t rows = 8192;
  std::int64_t turns = 100;  // iterations; $SATRAP_BENCH_TURNS
  std::int64_t ids() const { return rows * 40 * 5; }
  std::int64_t distinct() const { return rows * 590'000 / 8192; }
};

inline Load load_of_environment() {
  const auto number = [](const char* name, std::int64_t standard) {
    const char* text = std::getenv(name);
    return text == nullptr ? standard : std::max<std::int64_t>(1, std::atoll(text));
  };
  Load load;
  load.rows = number("SATRAP_BENCH_ROWS", load.rows);
  load.turns = number("SATRAP_BENCH_TURNS", load.turns);
  return load;
}

inline const Load& load() {
  static const Load instance = load_of_environment();
  return instance;
}

/// Which axes an operation has beside those of all.
struct Sweep {
  bool optimizers = false;
  bool lookups = false;  // hit rate, occupied share of the cache
  bool rows = true;      // it reads or writes rows: size of the cache, granularity of reads
};

inline Axes axes_of(const benchmark::State& state) {
  Axes axes;
  axes.dim = state.range(0);
  axes.weights = static_cast<FloatType>(state.range(1));
  axes.optimizer = static_cast<RowOptimizerType>(state.range(2));
  axes.zipf_percent = state.range(3);
  axes.pooling = state.range(4);
  axes.hit_percent = state.range(5);
  axes.load_percent = state.range(6);
  axes.cache_gb = state.range(7);
  axes.fetch_bytes = state.range(8);
  axes.as_graph = state.range(9) != 0;
  return axes;
}

/// The reference load, and each axis varied alone: all combinations would take days.
inline void apply_axes(benchmark::internal::Benchmark* benchmark, const Sweep& sweep) {
  benchmark->ArgNames(
      {"dim", "w", "opt", "zipf", "pool", "hit", "load", "cache", "fetch", "graph"});
  // Quantiles are of the iterations: each repetition would build its workload anew.
  benchmark->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(load().turns);
  const auto add = [&](const Axes& a) {
    benchmark->Args({a.dim, static_cast<std::int64_t>(a.weights),
                     static_cast<std::int64_t>(a.optimizer), a.zipf_percent, a.pooling,
                     a.hit_percent, a.load_percent, a.cache_gb, a.fetch_bytes, a.as_graph ? 1 : 0});
  };
  add({});
  add({.as_graph = true});
  for (const std::int64_t dim : {8, 16, 32, 128, 256}) add({.dim = dim});
  for (const auto type : {FloatType::kBf16, FloatType::kFp16}) add({.weights = type});
  for (const std::int64_t zipf : {105, 120}) add({.zipf_percent = zipf});
  for (const std::int64_t pooling : {1, 50, 1000, 100'000}) add({.pooling = pooling});
  if (sweep.optimizers) {
    for (const std::int64_t optimizer : {0, 2, 3, 4}) {
      add({.optimizer = static_cast<RowOptimizerType>(optimizer)});
    }
  }
  if (sweep.lookups) {
    for (const std::int64_t hit : {95, 80}) add({.hit_percent = hit});
    for (const std::int64_t percent : {50, 100}) add({.hit_percent = 95, .load_percent = percent});
  }
  if (sweep.rows) {
    add({.dim = 8, .fetch_bytes = 32});
    for (const std::int64_t gb : {10, 100}) add({.cache_gb = gb});
  }
}

}  // namespace satrap::bench
