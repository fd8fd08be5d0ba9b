// The batch of a table group for a device, on the host and one thread: ids become keys in pinned
// memory. CPU time per example, and ids per second.

#include <benchmark/benchmark.h>

#include "bench/embedding/workload.h"
#include "satrap/backend/device.h"
#include "satrap/backend/stream.h"
#include "satrap/embedding/group_batch.h"

namespace satrap::embedding {
namespace {

void fill_and_upload(benchmark::State& state, const Shape& shape) {
  constexpr std::int64_t kExamples = 2048, kBatches = 32;
  std::vector<table::TableSpec> tables;
  std::vector<job::FeatureSpec> features;
  for (std::size_t f = 0; f < shape.cardinalities.size(); ++f) {
    table::TableSpec& spec = tables.emplace_back();
    spec.name = "C" + std::to_string(f + 1);
    spec.id = static_cast<TableId>(f);
    spec.dim = shape.dim;
    features.push_back({.name = spec.name, .table = spec.id});
  }
  std::mt19937_64 random(1);
  std::vector<data::Batch> batches;
  for (std::int64_t b = 0; b < kBatches; ++b) {
    batches.push_back(zipf_batch(shape, kExamples, random));
  }
  const auto device = backend::make_host_device();
  const backend::Stream stream(*device);
  const FeatureLayout layout(features, tables, FeatureLayout::kDeviceColumns);
  const TableGroups groups(features, tables, 1);
  ThreadPool pool(1);
  GroupBatch group(*device, layout, groups.groups()[0], pool);
  std::int64_t ids = 0, steps = 0;
  for (auto _ : state) {
    group.fill(batches[static_cast<std::size_t>(steps++ % kBatches)], layout.output_width);
    group.upload(stream);
    stream.wait_until_idle();
    ids += group.num_ids();
  }
  using benchmark::Counter;
  state.counters["per_example"] =
      Counter(static_cast<double>(steps * kExamples), Counter::kIsRate | Counter::kInvert);
  state.counters["ids/s"] = Counter(static_cast<double>(ids), Counter::kIsRate);
}
BENCHMARK_CAPTURE(fill_and_upload, dlrm_kaggle, kaggle_shape(16));
BENCHMARK_CAPTURE(fill_and_upload, embedding_bound, bound_shape(16));

}  // namespace
}  // namespace satrap::embedding
