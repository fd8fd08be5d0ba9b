// The stages of the embedding path on one thread, and the whole step: CPU time per example, ids per
// second, and bytes of rows, gradients and outputs that must move, per second.

#include <map>

#include <benchmark/benchmark.h>

#include "bench/embedding/workload.h"

namespace satrap::embedding {
namespace {

constexpr std::int64_t kRows = 2048;
constexpr std::int64_t kBatches = 32;

enum class Stage { kPlan, kForward, kBackward, kStep };

std::int64_t bytes_moved(const Workload& w, const BatchPlan& plan, Stage stage) {
  const auto row = static_cast<std::int64_t>(sizeof(float)) * w.tables[0]->spec().dim;
  const std::int64_t gather = plan.num_occurrences() * row;
  const auto dense = static_cast<std::int64_t>(w.pooled.values().size() * sizeof(float));
  switch (stage) {
    case Stage::kPlan:
      return plan.num_occurrences() * 8;
    case Stage::kForward:
      return gather + dense;
    case Stage::kBackward:
      return gather + 2 * plan.num_unique() * w.tables[0]->row_bytes();
    case Stage::kStep:
      return bytes_moved(w, plan, Stage::kPlan) + bytes_moved(w, plan, Stage::kForward) +
             bytes_moved(w, plan, Stage::kBackward);
  }
  return 0;
}

const BatchPlan& plan_of(const BatchRows& rows) {
  return static_cast<const PlannedRows&>(rows).plan();
}

void run(benchmark::State& state, Workload& w, Stage stage) {
  std::int64_t step = 0, ids = 0, bytes = 0;
  for (auto _ : state) {
    const auto b = static_cast<std::size_t>(step++ % kBatches);
    BatchRows& rows = *w.rows[b];
    if (stage == Stage::kPlan || stage == Stage::kStep) {
      rows.make_plan(*w.planner, w.batches[b], step);
    }
    if (stage == Stage::kForward || stage == Stage::kStep) {
      rows.pool(w.batches[b], w.pooled.view(), {});
    }
    if (stage == Stage::kBackward || stage == Stage::kStep) rows.update(w.grad.view(), step);
    ids += plan_of(rows).num_occurrences();
    bytes += bytes_moved(w, plan_of(rows), stage);
  }
  using benchmark::Counter;
  state.counters["per_example"] =
      Counter(static_cast<double>(step * kRows), Counter::kIsRate | Counter::kInvert);
  state.counters["ids/s"] = Counter(static_cast<double>(ids), Counter::kIsRate);
  state.counters["bytes/s"] = Counter(static_cast<double>(bytes), Counter::kIsRate);
}

void register_all() {
  static const std::map<std::string, RowOptimizerType> kOptimizers = {
      {"sgd", RowOptimizerType::kSgd},
      {"adagrad", RowOptimizerType::kAdagrad},
      {"rowwise_adagrad", RowOptimizerType::kRowwiseAdagrad},
      {"adam", RowOptimizerType::kAdam},
      {"ftrl", RowOptimizerType::kFtrl}};
  static const std::map<std::string, Stage> kStages = {{"1_plan", Stage::kPlan},
                                                       {"2_forward", Stage::kForward},
                                                       {"3_backward", Stage::kBackward},
                                                       {"4_step", Stage::kStep}};
  for (const Shape& shape : {kaggle_shape(16), bound_shape(64)}) {
    for (const auto& [optimizer_name, optimizer] : kOptimizers) {
      for (const auto& [stage_name, stage] : kStages) {
        if (optimizer != RowOptimizerType::kAdagrad && stage != Stage::kBackward) continue;
        const std::string name = shape.name + "/" + optimizer_name + "/" + stage_name;
        benchmark::RegisterBenchmark(name.c_str(), [shape, type = optimizer,
                                                    which = stage](benchmark::State& state) {
          // Built when it is first wanted, kept for the stages that follow.
          static std::string built;
          static std::unique_ptr<Workload> workload;
          const std::string wanted = shape.name + std::to_string(static_cast<int>(type));
          if (built != wanted) {
            workload.reset();
            workload = std::make_unique<Workload>(shape, type, kRows, kBatches, 1);
            built = wanted;
          }
          run(state, *workload, which);
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
}

const bool kRegistered = (register_all(), true);

}  // namespace
}  // namespace satrap::embedding
