#include "bench/backend/timing.h"

namespace satrap::bench {
namespace {

/// Gather and sum, bf16 out. Bytes: weights, per distinct row or per id; index and factor per id;
/// the output.
void pool_forward(benchmark::State& state, Workload& workload) {
  workload.prepare();
  time_batches(state, workload, [&](Batch& batch) {
    device().pool_forward(
        {workload.cache->view(), batch.bags, batch.view(), FloatType::kBf16, batch.vectors.data()},
        workload.stream);
  });
  const Batch& batch = *workload.batches[0];
  const auto n = static_cast<double>(batch.bags.num_ids);
  const auto unique = static_cast<double>(workload.num_unique(batch));
  const auto weights =
      static_cast<double>(workload.layout.padded_dim * bytes_of(workload.layout.weight_type));
  const double rest = n * 8 + unique * 4 + static_cast<double>(batch.vectors.bytes());
  report(state, unique * weights + rest, n * weights + rest);
}
BENCHMARK(with_workload<pool_forward>)->Name("pool_forward")->Apply([](auto* b) {
  apply_axes(b, {});
});

}  // namespace
}  // namespace satrap::bench
