#include "satrap/trainer/dry_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/resource.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/row_count.h"
#include "satrap/data/topic.h"
#include "satrap/job/label_loss.h"
#include "satrap/kernels/row_layout.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/scorer.h"
#include "satrap/trainer/metrics.h"
#include "src/trainer/loaded_model.h"
#include "src/trainer/mean_label.h"

namespace satrap::trainer {
namespace {

constexpr std::int64_t kFitRows = 10'000;
constexpr std::int64_t kEstimateRows = 100'000;

std::unique_ptr<data::BatchSource> open_source(const data::Dataset& data,
                                               std::int64_t seed,
                                               data::Role role) {
  const data::FittedTransforms transforms = data::fit_transforms(data, seed, kFitRows);
  return data::open_batches(data, transforms, role, {.seed = seed});
}

data::Batch first_batch(data::BatchSource& source) {
  data::Batch batch;
  if (!source.next(batch)) throw Error(ErrorCode::kInvalidData, "no row can be used");
  return batch;
}

/// The different ids of each table, counted while examples are added.
class IdCounts {
 public:
  IdCounts(const pipeline::Model& model) : model_(model), ids_(model.specs.tables.size()) {}

  void add(const data::Batch& batch) {
    const auto& features = model_.specs.features;
    const auto n = static_cast<std::size_t>(batch.num_examples);
    for (std::size_t f = 0; f < features.size(); ++f) {
      auto& ids = ids_[static_cast<std::size_t>(features[f].table)];
      ids.insert(ids.end(), batch.ids.begin() + batch.offsets[f * n],
                 batch.ids.begin() + batch.offsets[(f + 1) * n]);
    }
    examples_ += batch.num_examples;
  }

  std::int64_t examples() const { return examples_; }

  std::vector<std::int64_t> count() {
    std::vector<std::int64_t> counts;
    for (auto& ids : ids_) {
      std::ranges::sort(ids);
      ids.erase(std::ranges::unique(ids).begin(), ids.end());
      counts.push_back(std::ssize(ids));
    }
    return counts;
  }

 private:
  const pipeline::Model& model_;
  std::vector<std::vector<std::uint64_t>> ids_;  // of each table
  std::int64_t examples_ = 0;
};

/// How many different ids there are among `total` examples, if there were `half` among the first
/// half of those seen and `whole` among all of them: Heaps' law, whole * (total / seen)^b.
std::int64_t extrapolate(std::int64_t half,
                         std::int64_t whole,
                         double half_share,
                         double seen,
                         double total) {
  if (half == 0 || total <= seen) return whole;
  const double growth = std::log(static_cast<double>(whole) / static_cast<double>(half));
  const double exponent = std::clamp(growth / -std::log(half_share), 0.0, 1.0);
  return std::llround(static_cast<double>(whole) * std::pow(total / seen, exponent));
}

/// Examples of an epoch, about; 0: unknown.
std::int64_t estimated_examples(const data::Dataset& data) {
  if (data.is_generated() || data.is_topic()) return 0;
  const data::EvalConfig& eval = data.config().eval;
  const double share = eval.is_part() ? 1.0 - eval.fraction : 1.0;
  return std::llround(share * static_cast<double>(data::estimate_rows(data)));
}

/// Fills in the rows of result.tables.
void estimate_tables(data::BatchSource& source,
                     data::Batch& batch,
                     const pipeline::Model& model,
                     DryRun& result) {
  IdCounts ids(model);
  std::vector<std::int64_t> half;
  std::int64_t half_examples = 0;
  bool has_more = true;
  while (has_more && ids.examples() < kEstimateRows) {
    ids.add(batch);
    if (half.empty() && ids.examples() >= kEstimateRows / 2) {
      half = ids.count();
      half_examples = ids.examples();
    }
    has_more = source.next(batch);
  }
  const std::vector<std::int64_t> whole = ids.count();
  result.examples_seen = ids.examples();
  const bool is_known = !has_more || result.examples_total <= 0 || half.empty();
  if (!has_more) result.examples_total = ids.examples();
  const auto seen = static_cast<double>(ids.examples());
  for (std::size_t t = 0; t < whole.size(); ++t) {
    std::int64_t& rows = result.tables[t].rows;
    rows = is_known ? whole[t]
                    : extrapolate(half[t], whole[t], static_cast<double>(half_examples) / seen,
                                  seen, static_cast<double>(result.examples_total));
    const std::int64_t limit = model.specs.tables[t].limits.capacity_rows;
    if (limit > 0) rows = std::min(rows, limit);
  }
}

}  // namespace

data::Dataset data_up_to_now(const job::JobConfig& job) {
  data::DataConfig config = job.data;
  if (data::reads_topic(config) && config.kafka.is_endless()) {
    config.kafka.end = data::KafkaConfig().end;
    if (config.kafka.start == "latest") config.kafka.start = data::KafkaConfig().start;
  }
  return data::Dataset(std::move(config), {.folder = job.folder});
}

FirstBatch read_first_batch(const data::Dataset& data, std::int64_t seed, data::Role role) {
  const data::Schema& schema = data.schema();
  FirstBatch first;
  const auto source = open_source(data, seed, role);
  const data::Batch batch = first_batch(*source);
  first.bad_rows = source->stats().bad_rows;
  first.examples = batch.num_examples;
  first.ids = std::ssize(batch.ids);
  std::vector<MeanLabel> means(schema.labels.size());
  add_labels(batch, means);
  for (std::size_t l = 0; l < schema.labels.size(); ++l) {
    first.labels.push_back({.config = schema.labels[l], .mean = means[l].value()});
  }
  return first;
}

DryRun dry_run(const job::JobConfig& job,
               const data::Dataset& data,
               const pipeline::MakeNetwork& make_network) {
  const job::JobConfig config = in_this_process(job);
  const data::Schema& schema = data.schema();
  ThreadPool pool(config.train.threads > 0 ? config.train.threads : num_cpus());
  pipeline::Cluster cluster(config, {});
  pipeline::Model model(config, schema, cluster, pool, make_network);
  const auto source = open_source(data, config.seed, data::Role::kTrain);
  data::Batch batch = first_batch(*source);

  DryRun result;
  result.dense_parameters = model.network->num_parameters();
  for (const table::TableSpec& table : model.specs.tables) {
    const RowLayout layout = RowLayout::of(table.dim, table.weights, table.optimizer.type);
    result.tables.push_back({.name = table.name, .dim = table.dim, .row_bytes = layout.row_bytes});
  }
  pipeline::Scorer scorer(model);
  const data::LabelConfig& label = schema.labels.front().source;
  std::vector<float> memory;
  const std::span<const float> scores =
      of_classes(scorer.score(batch), batch.labels, label.classes, memory);
  const CountedRows rows({scores, batch.labels, batch.weights}, schema.num_labels(), 0,
                         label.positive_weight);
  const job::Loss loss = job::loss_of(config.model, label);
  const Metrics metrics = compute_metrics(rows.rows(), loss);
  result.metric = loss == job::Loss::kMse ? "rmse" : "logloss";
  result.value = loss == job::Loss::kMse ? metrics.rmse : metrics.logloss;
  result.examples_total = source->rows_per_epoch();
  if (result.examples_total <= 0) result.examples_total = estimated_examples(data);
  estimate_tables(*source, batch, model, result);
  return result;
}

}  // namespace satrap::trainer
