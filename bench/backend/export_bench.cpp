#include "bench/backend/timing.h"

namespace satrap::bench {
namespace {

/// Flush: lists the dirty rows of 4096 sets (of half of a small cache) and copies them to staging.
/// Half of the rows are dirty.
void export_dirty(benchmark::State& state, Workload& workload) {
  const backend::CacheView& cache = workload.cache->view();
  const std::int64_t sets = std::min<std::int64_t>(4096, cache.size.num_sets / 2);
  std::vector<std::uint8_t> dirty(static_cast<std::size_t>(cache.size.num_slots()));
  for (std::size_t i = 0; i < dirty.size(); ++i) dirty[i] = i % 2;
  device().copy(cache.dirty, dirty.data(), cache.size.num_slots(), workload.stream);
  const backend::SlotListBuffer list(device(), sets);
  const std::int64_t max_rows = sets * backend::CacheSize::kWays;
  const Memory staging(device(), backend::Place::kDevice, max_rows * workload.layout.row_bytes,
                       "staging");
  std::int64_t first = 0;
  time_batches(state, workload, [&](Batch&) {
    first = (first + sets) % (cache.size.num_sets - sets);
    device().list_slots({cache, first, sets, list.view()}, workload.stream);
    device().gather_rows(
        {cache, {list.view().slots, list.view().count, 0, max_rows}, staging.data()},
        workload.stream);
  });
  const double rows = download_one(list.view().count);
  const double bytes = rows * 2 * static_cast<double>(workload.layout.row_bytes) +
                       static_cast<double>(sets) * 32 * 2 * 2 + rows * (8 + 4 + 8);
  report(state, bytes, bytes);
}
BENCHMARK(with_workload<export_dirty>)->Name("export_dirty")->Apply([](auto* b) {
  apply_axes(b, {});
});

}  // namespace
}  // namespace satrap::bench
