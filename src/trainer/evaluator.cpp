#include "evaluator.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/data/loader.h"

namespace satrap::trainer {

std::span<const float> join_numeric(const data::Batch& batch,
                                    std::span<const float> mask,
                                    std::vector<float>& joined) {
  if (mask.empty()) return batch.numeric;
  const auto rows = static_cast<std::size_t>(batch.num_rows);
  const auto numbers = static_cast<std::size_t>(batch.num_numeric);
  const std::size_t masks = mask.size() / rows;
  joined.resize(rows * (numbers + masks));
  for (std::size_t r = 0; r < rows; ++r) {
    auto out = joined.begin() + static_cast<std::ptrdiff_t>(r * (numbers + masks));
    out = std::copy_n(batch.numeric.data() + r * numbers, numbers, out);
    std::copy_n(mask.data() + r * masks, masks, out);
  }
  return joined;
}

Evaluation evaluate_model(const JobConfig& config,
                          const data::Schema& schema,
                          const data::FittedTransforms& transforms,
                          Model& model,
                          ThreadPool& pool,
                          const std::atomic<bool>* stop) {
  data::ReadOptions options;
  options.seed = config.seed;
  options.batch_size = config.data.batch_size;
  const auto source =
      data::open_batches(config.data, schema, transforms, data::Role::kEval, options);

  // Its own worker: the model's may be planning later steps at this moment.
  const auto worker = model.make_worker(pool);
  MetricAccumulator metrics;
  data::Batch batch;
  embedding::Plan plan;
  std::vector<std::byte> missing;
  std::vector<float> pooled, mask, joined, probabilities;
  while ((stop == nullptr || !stop->load()) && source->next(batch)) {
    const auto rows = static_cast<std::size_t>(batch.num_rows);
    worker->plan_without_insert(batch, plan, missing);
    pooled.resize(rows * static_cast<std::size_t>(worker->output_width()));
    mask.resize(rows * static_cast<std::size_t>(worker->mask_width()));
    worker->forward(plan, batch, pooled, mask);
    probabilities.resize(rows);
    model.network->predict({.num_rows = batch.num_rows,
                            .numeric = join_numeric(batch, mask, joined),
                            .pooled = pooled,
                            .labels = {},
                            .step = 0},
                           probabilities);
    metrics.add(probabilities, batch.labels);
  }
  const Metrics result = metrics.compute();
  return {result.examples, result.auc, result.logloss, result.ne, result.calibration};
}

}  // namespace satrap::trainer
