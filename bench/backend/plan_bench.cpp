#include "bench/backend/timing.h"

namespace satrap::bench {
namespace {

/// Sort, unique, segments. Bytes: the radix sort's five passes over tags and positions, as in a
/// device-wide sort that reads and writes each once per pass, and one histogram pass.
void build_plan(benchmark::State& state, Workload& workload) {
  time_batches(state, workload, [&](Batch& batch) { workload.build(batch); });
  const double n = static_cast<double>(workload.batches[0]->bags.num_ids);
  const double sort_bytes = n * (5 * 2 * 12 + 8);
  report(state, sort_bytes, sort_bytes);
}
BENCHMARK(with_workload<build_plan>)->Name("build_plan")->Apply([](auto* b) {
  apply_axes(b, {.rows = false});
});

}  // namespace
}  // namespace satrap::bench
