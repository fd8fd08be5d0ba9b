#include <vector>

#include <benchmark/benchmark.h>

#include "satrap/core/auc.h"
#include "satrap/core/hash.h"

namespace satrap {
namespace {

/// Exact AUC of an evaluation set. Target: 2 million rows in less than 150 ms.
void auc_of_random_scores(benchmark::State& state) {
  const auto num_rows = static_cast<std::size_t>(state.range(0));
  const RandomStream random{1};
  std::vector<float> scores(num_rows), labels(num_rows);
  for (std::size_t i = 0; i < num_rows; ++i) {
    scores[i] = random.uniform(2 * i);
    labels[i] = random.uniform(2 * i + 1) < scores[i] ? 1.0F : 0.0F;
  }
  for (auto _ : state) benchmark::DoNotOptimize(auc(scores, labels));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(auc_of_random_scores)->Arg(100'000)->Arg(2'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace satrap
