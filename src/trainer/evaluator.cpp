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

std::optional<Evaluation> evaluate_model(const JobConfig& config,
                                         const data::Schema& schema,
                                         const data::FittedTransforms& transforms,
                                         Model& model,
                                         const Cluster& cluster,
                                         RankGroup& ranks,
                                         const std::atomic<bool>* stop) {
  data::ReadOptions options;
  options.seed = config.seed;
  options.rank = cluster.rank();
  options.world_size = cluster.size();
  const auto source =
      data::open_batches(config.data, schema, transforms, data::Role::kEval, options);
  const auto reader = model.store->make_reader();
  data::Batch batch;
  std::vector<float> pooled, mask, joined, probabilities, all_probabilities, all_labels;
  const auto stopped = [&] { return stop != nullptr && stop->load(); };
  while (!stopped() && source->next(batch)) {
    reader->look_up(batch, pooled, mask);
    probabilities.resize(static_cast<std::size_t>(batch.num_rows));
    model.network->predict({.num_rows = batch.num_rows,
                            .numeric = join_numeric(batch, mask, joined),
                            .pooled = pooled,
                            .labels = {},
                            .step = 0},
                           probabilities);
    all_probabilities.insert(all_probabilities.end(), probabilities.begin(), probabilities.end());
    all_labels.insert(all_labels.end(), batch.labels.begin(), batch.labels.end());
  }
  if (ranks.any(stopped())) return std::nullopt;
  const std::vector<float> labels = ranks.gather(all_labels);
  if (labels.empty()) {
    throw Error(ErrorCode::kInvalidData, "no row of the evaluation data can be used");
  }
  const Metrics result = compute_metrics(ranks.gather(all_probabilities), labels);
  return Evaluation{result.examples, result.auc, result.logloss, result.ne, result.calibration};
}

}  // namespace satrap::trainer
