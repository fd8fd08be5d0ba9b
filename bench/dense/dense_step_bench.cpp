// One dense training step (forward, backward, Adam) with the shapes used for the peers, batch 2048.
// Reports examples/s, and CPU time of all threads per example.

#include <cstdint>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <time.h>

#include "satrap/core/hash.h"
#include "satrap/core/thread_pool.h"
#include "satrap/dense/dense_network.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kRows = 2048, kNumeric = 13, kFields = 26;

double process_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::vector<float> uniform(std::uint64_t stream, std::int64_t size, float scale) {
  const RandomStream random{hash64(stream)};
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (2 * random.uniform(i) - 1) * scale;
  return values;
}

void step(benchmark::State& state,
          const job::ModelConfig& model,
          std::int64_t width,
          Precision precision = Precision::kFp32) {
  ThreadPool pool(state.range(0));
  const InputShape shape{.num_numeric = kNumeric,
                         .field_widths = std::vector<std::int64_t>(kFields, width)};
  const auto network = DenseNetwork::create(model, {}, precision, shape, 1, pool);
  const std::vector<float> numeric = uniform(1, kRows * kNumeric, 2.0F);
  const std::vector<float> pooled = uniform(2, kRows * shape.pooled_width(), 0.1F);
  std::vector<float> labels = uniform(3, kRows, 1.0F), probabilities(labels.size());
  for (float& label : labels) label = label > 0.5F ? 1.0F : 0.0F;
  std::vector<float> grad_pooled(pooled.size());
  std::int64_t steps = 0;
  const auto one_step = [&] {
    network->forward_backward({kRows, host_matrix(std::span(numeric), kRows, kNumeric),
                               host_matrix(std::span(pooled), kRows, shape.pooled_width()),
                               host_matrix(std::span(std::as_const(labels)), kRows, 1)},
                              {host_matrix(std::span(probabilities), kRows, 1),
                               host_matrix(std::span(grad_pooled), kRows, shape.pooled_width())});
    network->apply(++steps);
  };
  one_step();
  const double cpu = process_cpu_seconds();
  for (auto _ : state) one_step();
  const double examples = static_cast<double>(state.iterations() * kRows);
  state.counters["cpu_us_per_example"] = (process_cpu_seconds() - cpu) / examples * 1e6;
  state.counters["examples/s"] = benchmark::Counter(examples, benchmark::Counter::kIsRate);
}

job::ModelConfig of_type(job::ModelType type) {
  job::ModelConfig config;
  config.type = type;
  return config;
}

#define SATRAP_STEP_BENCH(...) \
  BENCHMARK_CAPTURE(step, __VA_ARGS__)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond)

SATRAP_STEP_BENCH(dlrm, of_type(job::ModelType::kDlrm), 16);
SATRAP_STEP_BENCH(dlrm_bf16, of_type(job::ModelType::kDlrm), 16, Precision::kBf16);
SATRAP_STEP_BENCH(deepfm, of_type(job::ModelType::kDeepFm), 17);
SATRAP_STEP_BENCH(dcn_v2, of_type(job::ModelType::kDcnV2), 16);
SATRAP_STEP_BENCH(logistic, of_type(job::ModelType::kLogistic), 1);

}  // namespace
}  // namespace satrap::dense
