#include "bench/backend/timing.h"

namespace satrap::bench {
namespace {

/// Bytes of the gradient and of its destinations: the gradient once, or once per id.
struct GradientBytes {
  double compulsory, algorithmic;
};
GradientBytes gradient_bytes(const Workload& workload, const Batch& batch) {
  const auto n = static_cast<double>(batch.bags.num_ids);
  const auto unique = static_cast<double>(workload.num_unique(batch));
  const double index = n * 8 + unique * (4 + 4 + 8);
  const auto vector = static_cast<double>(workload.layout.padded_dim * 2);
  return {static_cast<double>(batch.vectors.bytes()) + index, n * vector + index};
}

/// Segment reduction of bf16 gradients and the optimizer. Rows are read and written.
void backward_update(benchmark::State& state, Workload& workload) {
  workload.prepare();
  const std::vector<TableStep> steps(static_cast<std::size_t>(kMaxTables),
                                     {RowStep(workload.optimizer, 1.0, 1), 0, 1});
  const Memory steps_on_device(device(), backend::Place::kDevice,
                               std::ssize(steps) * static_cast<std::int64_t>(sizeof(TableStep)),
                               "steps of tables");
  device().copy(steps_on_device.data(), steps.data(), steps_on_device.bytes(), workload.stream);
  time_batches(state, workload, [&](Batch& batch) {
    device().backward_update(
        {workload.cache->view(), batch.view(), FloatType::kBf16, batch.vectors.data(),
         workload.axes.optimizer, reinterpret_cast<const TableStep*>(steps_on_device.data())},
        workload.stream);
  });
  const Batch& batch = *workload.batches[0];
  const auto unique = static_cast<double>(workload.num_unique(batch));
  // Row-wise Adagrad's one number of state costs a sector.
  const double state_bytes = workload.axes.optimizer == RowOptimizerType::kRowwiseAdagrad
                                 ? 32.0
                                 : static_cast<double>(workload.layout.state_floats * 4);
  const double row =
      static_cast<double>(workload.layout.padded_dim * bytes_of(workload.layout.weight_type)) +
      state_bytes;
  const GradientBytes gradient = gradient_bytes(workload, batch);
  report(state, unique * 2 * row + gradient.compulsory, unique * 2 * row + gradient.algorithmic);
}
BENCHMARK(with_workload<backward_update>)->Name("backward_update")->Apply([](auto* b) {
  apply_axes(b, {.optimizers = true});
});

/// Only segment reduction.
void backward_gradients(benchmark::State& state, Workload& workload) {
  workload.prepare();
  const Memory out(device(), backend::Place::kDevice, load().ids() * workload.layout.padded_dim * 4,
                   "gradients");
  time_batches(state, workload, [&](Batch& batch) {
    device().backward_gradients(
        {workload.layout, batch.view(), FloatType::kBf16, batch.vectors.data(), nullptr,
         reinterpret_cast<float*>(out.data())},
        workload.stream);
  });
  const Batch& batch = *workload.batches[0];
  const double written = static_cast<double>(workload.num_unique(batch)) *
                         static_cast<double>(workload.layout.padded_dim) * 4;
  const GradientBytes gradient = gradient_bytes(workload, batch);
  report(state, written + gradient.compulsory, written + gradient.algorithmic);
}
BENCHMARK(with_workload<backward_gradients>)->Name("backward_gradients")->Apply([](auto* b) {
  apply_axes(b, {});
});

}  // namespace
}  // namespace satrap::bench
