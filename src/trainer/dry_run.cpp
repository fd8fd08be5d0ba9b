#include "satrap/trainer/dry_run.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "loaded_model.h"
#include "satrap/core/error.h"
#include "satrap/core/resource.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/loader.h"
#include "satrap/data/topic.h"
#include "satrap/kernels/row_layout.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/scorer.h"
#include "satrap/trainer/metrics.h"

namespace satrap::trainer {
namespace {

constexpr std::int64_t kFitRows = 10'000;

/// A topic without an end is read up to the messages that are there, so that nothing is waited for.
data::DataConfig up_to_now(data::DataConfig config) {
  if (!data::reads_topic(config) || !config.kafka.is_endless()) return config;
  config.kafka.end = data::KafkaConfig().end;
  if (config.kafka.start == "latest") config.kafka.start = data::KafkaConfig().start;
  return config;
}

data::Batch first_batch(const job::JobConfig& config,
                        const data::Schema& schema,
                        data::Role role,
                        std::int64_t& bad_rows) {
  const data::DataConfig now = up_to_now(config.data);
  data::DataConfig fit = now;
  if (fit.fit_rows == 0 || fit.fit_rows > kFitRows) fit.fit_rows = kFitRows;
  const data::FittedTransforms transforms = data::fit_transforms(fit, schema, config.seed);
  const auto source = data::open_batches(now, schema, transforms, role, {.seed = config.seed});
  data::Batch batch;
  if (!source->next(batch)) throw Error(ErrorCode::kInvalidData, "no row can be used");
  bad_rows = source->stats().bad_rows;
  return batch;
}

std::int64_t rows_needed(const data::Batch& batch,
                         const std::vector<job::FeatureSpec>& features,
                         TableId table) {
  std::unordered_set<std::uint64_t> ids;
  for (std::size_t f = 0; f < features.size(); ++f) {
    if (features[f].table != table) continue;
    const auto n = static_cast<std::size_t>(batch.num_examples);
    const auto begin = batch.ids.begin() + batch.offsets[f * n];
    ids.insert(begin, batch.ids.begin() + batch.offsets[(f + 1) * n]);
  }
  return std::ssize(ids);
}

}  // namespace

FirstBatch read_first_batch(const job::JobConfig& config, bool of_evaluation) {
  const data::Schema schema = data::resolve_schema(config.data);
  FirstBatch first;
  const data::Batch batch = first_batch(
      config, schema, of_evaluation ? data::Role::kEval : data::Role::kTrain, first.bad_rows);
  first.examples = batch.num_examples;
  first.ids = std::ssize(batch.ids);
  for (std::size_t l = 0; l < schema.labels.size(); ++l) {
    double sum = 0.0;
    for (std::size_t i = l; i < batch.labels.size(); i += schema.labels.size()) {
      sum += static_cast<double>(batch.labels[i]);
    }
    first.positive_shares.emplace_back(schema.labels[l].name,
                                       sum / static_cast<double>(batch.num_examples));
  }
  return first;
}

DryRun dry_run(const job::JobConfig& job) {
  const job::JobConfig config = in_this_process(job);
  const data::Schema schema = data::resolve_schema(config.data);
  ThreadPool pool(config.train.threads > 0 ? config.train.threads : num_cpus());
  pipeline::Cluster cluster(config, {});
  pipeline::Model model(config, schema, cluster, pool);
  std::int64_t bad_rows = 0;
  const data::Batch batch = first_batch(config, schema, data::Role::kTrain, bad_rows);

  DryRun result;
  result.dense_parameters = model.network->num_parameters();
  for (const table::TableSpec& table : model.specs.tables) {
    const RowLayout layout = RowLayout::of(table.dim, table.weights, table.optimizer.type);
    result.tables.push_back({.name = table.name,
                             .dim = table.dim,
                             .row_bytes = layout.row_bytes,
                             .first_rows = rows_needed(batch, model.specs.features, table.id)});
  }
  pipeline::Scorer scorer(model);
  std::vector<float> probabilities, labels;
  const auto first_label = [&](std::span<const float> values, std::vector<float>& copy) {
    return values_of_label(values, schema.num_labels(), 0, copy);
  };
  const std::span<const float> scores = first_label(scorer.score(batch), probabilities);
  result.logloss = compute_metrics(scores, first_label(batch.labels, labels)).logloss;
  return result;
}

}  // namespace satrap::trainer
