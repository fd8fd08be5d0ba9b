#include "evaluator.h"

#include <array>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/data/loader.h"
#include "satrap/data/pass_progress.h"
#include "satrap/pipeline/scorer.h"

namespace satrap::trainer {
namespace {

/// The scores of all ranks: probabilities and labels [examples, num_labels], groups [examples].
struct Scored {
  std::vector<float> probabilities, labels;
  std::vector<std::uint64_t> groups;
};

Evaluation evaluate_label(const Scored& scored,
                          const data::Schema& schema,
                          std::int64_t label,
                          const pipeline::Cluster& cluster,
                          pipeline::RankGroup& ranks) {
  std::vector<float> some_probabilities, some_labels;
  const std::span<const float> probabilities =
      values_of_label(scored.probabilities, schema.num_labels(), label, some_probabilities);
  const std::span<const float> labels =
      values_of_label(scored.labels, schema.num_labels(), label, some_labels);
  const Metrics result = compute_metrics(probabilities, labels);
  GroupedAuc grouped;
  if (schema.grouped) grouped = grouped_auc(scored.groups, probabilities, labels);
  // All ranks use the chief's result: another CPU may round differently, and ranks decide by it.
  const std::array<double, 5> mine = {result.auc, result.logloss, result.ne, result.calibration,
                                      grouped.auc};
  const std::vector<double> of_chief =
      ranks.gather(std::span<const double>(mine).first(cluster.is_chief() ? mine.size() : 0));
  Evaluation evaluation{result.examples, of_chief[0], of_chief[1], of_chief[2], of_chief[3]};
  if (schema.grouped) evaluation.grouped = {of_chief[4], grouped.num_groups};
  evaluation.reliability = reliability(probabilities, labels);
  evaluation.label = schema.labels[static_cast<std::size_t>(label)].name;
  return evaluation;
}

}  // namespace

std::optional<Evaluation> evaluate_model(const job::JobConfig& config,
                                         const data::Schema& schema,
                                         const data::FittedTransforms& transforms,
                                         pipeline::Model& model,
                                         const pipeline::Cluster& cluster,
                                         pipeline::RankGroup& ranks,
                                         const std::atomic<bool>* stop,
                                         LiveProgress* live) {
  data::ReadOptions options;
  options.seed = config.seed;
  options.rank = cluster.rank();
  options.world_size = cluster.size();
  options.stop = stop;
  const auto source =
      data::open_batches(config.data, schema, transforms, data::Role::kEval, options);
  model.tables->flush();
  ranks.barrier();  // all have: each rank's rows may be in the cache of another
  pipeline::Scorer scorer(model);
  data::Batch batch;
  Scored scored;
  if (live != nullptr) live->evaluated = 0;
  data::PassProgress progress("evaluating", source->stats().total_bytes, /*stop=*/nullptr);
  const auto stopped = [&] { return stop != nullptr && stop->load(); };
  while (!stopped() && source->next(batch)) {
    const std::span<const float> probabilities = scorer.score(batch);
    scored.probabilities.insert(scored.probabilities.end(), probabilities.begin(),
                                probabilities.end());
    if (live != nullptr) live->evaluated += batch.num_examples;
    if (live == nullptr) progress.note(source->stats().bytes);
    scored.labels.insert(scored.labels.end(), batch.labels.begin(), batch.labels.end());
    scored.groups.insert(scored.groups.end(), batch.groups.begin(), batch.groups.end());
  }
  if (ranks.any(stopped())) return std::nullopt;
  scored.labels = ranks.gather(scored.labels);
  if (scored.labels.empty()) {
    throw Error(ErrorCode::kInvalidData, "no row of the evaluation data can be used");
  }
  scored.probabilities = ranks.gather(scored.probabilities);
  if (schema.grouped) scored.groups = ranks.gather(scored.groups);
  std::vector<Evaluation> labels;
  for (std::int64_t l = 0; l < schema.num_labels(); ++l) {
    labels.push_back(evaluate_label(scored, schema, l, cluster, ranks));
  }
  Evaluation evaluation = labels.front();
  if (labels.size() > 1) evaluation.labels = std::move(labels);
  return evaluation;
}

}  // namespace satrap::trainer
