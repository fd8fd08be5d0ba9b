#include "src/trainer/evaluator.h"

#include <span>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/pass_progress.h"
#include "satrap/job/label_loss.h"
#include "satrap/pipeline/scorer.h"
#include "src/trainer/slices.h"

namespace satrap::trainer {
namespace {

/// The examples of this rank, then of all ranks.
struct Scored {
  std::vector<float> probabilities, labels;  // as ScoredRows
  std::vector<float> weights;                // [examples], or empty
  std::vector<std::uint64_t> groups;         // likewise
  std::vector<SliceColumn> slices;           // of train.slices

  void add(std::span<const float> scores, const data::Batch& batch, const data::Schema& schema) {
    append(of_classes(scores, batch.labels, schema.labels.front().source.classes, memory_),
           probabilities);
    append(std::span(batch.labels), labels);
    append(std::span(batch.weights), weights);
    append(std::span(batch.groups), groups);
    for (std::size_t i = 0; i < slices.size(); ++i) slices[i].add(batch.kept[i]);
  }

  void gather(bool is_grouped, pipeline::RankGroup& ranks) {
    labels = ranks.gather(labels);
    probabilities = ranks.gather(probabilities);
    if (ranks.any(!weights.empty())) weights = ranks.gather(weights);
    if (is_grouped) groups = ranks.gather(groups);
    for (SliceColumn& column : slices) column.gather(ranks);
  }

 private:
  template <class T>
  static void append(std::span<T> more, auto& all) {
    all.insert(all.end(), more.begin(), more.end());
  }

  std::vector<float> memory_;
};

Evaluation evaluate_label(const Scored& scored,
                          const data::Schema& schema,
                          const job::JobConfig& job,
                          std::int64_t label) {
  const data::NamedLabelConfig& config = schema.labels[static_cast<std::size_t>(label)];
  const CountedRows counted({scored.probabilities, scored.labels, scored.weights},
                            schema.num_labels(), label, config.source.positive_weight);
  const ScoredRows& rows = counted.rows();
  const job::Loss loss = job::loss_of(job.model, config.source);
  Evaluation evaluation{compute_metrics(rows, loss)};
  evaluation.loss_of_label = loss;
  evaluation.is_weighted = !rows.weights.empty();
  if (schema.grouped && loss == job::Loss::kBce) {
    std::vector<std::uint64_t> memory;
    const auto groups = counted.of(std::span<const std::uint64_t>(scored.groups), memory);
    evaluation.grouped = grouped_auc(groups, rows.probabilities, rows.labels, rows.weights);
    if (!job.train.metrics_at.empty()) {
      evaluation.ranking = grouped_ranking(groups, rows.probabilities, rows.labels, rows.weights,
                                           job.train.metrics_at);
    }
  }
  if (loss == job::Loss::kBce) evaluation.reliability = reliability(rows);
  for (const SliceColumn& column : scored.slices) {
    evaluation.slices.push_back(column.evaluate(counted, loss));
  }
  evaluation.label = config.name;
  return evaluation;
}

/// All ranks use the chief's numbers: another CPU may round differently, and ranks decide by them.
void take_from_chief(Evaluation& mine,
                     const pipeline::Cluster& cluster,
                     pipeline::RankGroup& ranks) {
  std::vector<double*> numbers;
  const auto add = [&](Metrics& metrics) {
    for (const NamedMetric& metric : metrics_of(mine.loss_of_label)) {
      numbers.push_back(&(metrics.*metric.value));
    }
  };
  add(mine);
  if (mine.grouped) numbers.push_back(&mine.grouped->auc);
  for (RankingAt& at : mine.ranking.at) {
    numbers.push_back(&at.ndcg);
    numbers.push_back(&at.recall);
  }
  for (SlicedColumn& column : mine.slices) {
    for (Slice& slice : column.slices) add(slice.metrics);
  }
  std::vector<double> values;
  for (const double* number : numbers) values.push_back(*number);
  if (!cluster.is_chief()) values.clear();
  values = ranks.gather(std::span<const double>(values));
  for (std::size_t i = 0; i < numbers.size(); ++i) *numbers[i] = values[i];
}

}  // namespace

std::optional<Evaluation> evaluate_model(const data::Dataset& data,
                                         const job::JobConfig& config,
                                         const data::FittedTransforms& transforms,
                                         pipeline::Model& model,
                                         const pipeline::Cluster& cluster,
                                         pipeline::RankGroup& ranks,
                                         const std::atomic<bool>* stop,
                                         LiveProgress* live) {
  const data::Schema& schema = data.schema();
  data::ReadOptions options;
  options.seed = config.seed;
  options.rank = cluster.rank();
  options.world_size = cluster.size();
  options.stop = stop;
  options.kept = config.train.slices;
  const auto source = data::open_batches(data, transforms, data::Role::kEval, options);
  model.tables->flush();
  ranks.barrier();  // all have: each rank's rows may be in the cache of another
  pipeline::Scorer scorer(model);
  data::Batch batch;
  Scored scored;
  for (const std::string& column : config.train.slices) scored.slices.emplace_back(column);
  if (live != nullptr) live->evaluated = 0;
  data::PassProgress progress("evaluating", source->stats().total_bytes, /*stop=*/nullptr);
  const auto stopped = [&] { return stop != nullptr && stop->load(); };
  while (!stopped() && source->next(batch)) {
    scored.add(scorer.score(batch), batch, schema);
    if (live != nullptr) live->evaluated += batch.num_examples;
    if (live == nullptr) progress.note(source->stats().bytes);
  }
  if (ranks.any(stopped())) return std::nullopt;
  scored.gather(schema.grouped, ranks);
  if (scored.labels.empty()) {
    throw Error(ErrorCode::kInvalidData, "no row of the evaluation data can be used");
  }
  std::vector<Evaluation> labels;
  for (std::int64_t l = 0; l < schema.num_labels(); ++l) {
    labels.push_back(evaluate_label(scored, schema, config, l));
    if (labels.back().examples == 0 && cluster.is_chief()) {
      log_warning("evaluation: no row counts; all have weight 0, or lack the label '{}'",
                  labels.back().label);
    }
    take_from_chief(labels.back(), cluster, ranks);
  }
  Evaluation evaluation = labels.front();
  if (labels.size() > 1) evaluation.labels = std::move(labels);
  return evaluation;
}

}  // namespace satrap::trainer
