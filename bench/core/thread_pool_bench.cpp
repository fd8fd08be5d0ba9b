// The cost of a loop over the pool without its bodies: the trainer runs about a thousand per
// second.
//
//   ninja -C build/release core_thread_pool_bench && build/release/bench/core_thread_pool_bench

#include <chrono>
#include <cstdint>

#include <benchmark/benchmark.h>

#include "satrap/core/thread_pool.h"

namespace satrap {
namespace {

void spin_for(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Bodies that do nothing: the bare cost of a loop.
void empty_loop(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  const std::int64_t count = state.range(1);
  for (auto _ : state) {
    pool.parallel_for(count, [](std::int64_t i) { benchmark::DoNotOptimize(i); });
  }
}
BENCHMARK(empty_loop)
    ->ArgNames({"threads", "count"})
    ->ArgsProduct({{1, 2, 4}, {2, 16}})
    ->UseRealTime();

// 8 bodies of 25 us, that is 200 us of work: the ideal is 200 us / threads.
void loop_of_200us(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  for (auto _ : state) {
    pool.parallel_for(8, [](std::int64_t) { spin_for(std::chrono::microseconds(25)); });
  }
}
BENCHMARK(loop_of_200us)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace satrap
