#include "satrap/trainer/importance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/data/open_rows.h"
#include "satrap/data/pass_progress.h"
#include "satrap/job/label_loss.h"
#include "satrap/pipeline/scorer.h"
#include "satrap/trainer/metrics.h"
#include "src/trainer/loaded_model.h"
#include "src/trainer/row_buffer.h"

namespace satrap::trainer {
namespace {

constexpr std::size_t kBufferRows = std::size_t{1} << 16;
constexpr std::uint64_t kPermutationStream = 0x7065726D757465;  // separates these draws from others
constexpr auto kNumRepetitions = static_cast<std::size_t>(Importance::kRepetitions);

bool is_set(const std::atomic<bool>* stop) { return stop != nullptr && stop->load(); }

/// Sums over buffers of how much worse one repetition makes each metric, by weight.
using Change = std::array<double, 2>;

MeanInterval interval_of(const std::vector<Change>& changes, std::size_t metric, double weight) {
  static_assert(Importance::kRepetitions == 5);
  constexpr double kStudentT = 2.7764451051977987;  // 97.5 % with 4 degrees of freedom
  const auto n = static_cast<double>(changes.size());
  double sum = 0.0, squares = 0.0;
  for (const Change& change : changes) sum += change[metric] / weight;
  const double mean = sum / n;
  for (const Change& change : changes) {
    const double off = change[metric] / weight - mean;
    squares += off * off;
  }
  return {.mean = mean, .half_width = kStudentT * std::sqrt(squares / (n - 1.0) / n)};
}

/// Measures buffer after buffer; one thread.
class Measurement {
 public:
  Measurement(LoadedModel& loaded, const std::atomic<bool>* stop)
      : scorer_(loaded.model),
        num_labels_(loaded.data.schema().num_labels()),
        label_(loaded.data.schema().labels.front().source),
        loss_(job::loss_of(loaded.config.model, label_)),
        metrics_(metrics_of_importance(loss_)),
        seed_(static_cast<std::uint64_t>(loaded.config.seed)),
        stop_(stop),
        inputs_(inputs_of(loaded.data.schema())),
        changes_(inputs_.size(), std::vector<Change>(kNumRepetitions)) {}

  /// Returns at once when it is stopped.
  void add(const RowBuffer& buffer) {
    const Metrics base = score(buffer, nullptr, {});
    examples_ += base.examples;
    if (base.examples == 0) return;
    for (std::size_t m = 0; m < metrics_.size(); ++m) {
      if (counts(base, m)) metric_weights_[m] += base.weight;
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      for (std::size_t r = 0; r < kNumRepetitions && !is_set(stop_); ++r) {
        const Metrics changed = score(buffer, &inputs_[i], permutation(buffer.num_rows(), i, r));
        Change& change = changes_[i][r];
        for (std::size_t m = 0; m < metrics_.size(); ++m) {
          const double before = base.*metrics_[m].value, now = changed.*metrics_[m].value;
          const double worse = metrics_[m].rises ? now - before : before - now;
          if (counts(base, m)) change[m] += base.weight * worse;
        }
      }
    }
    ++num_buffers_;
  }

  Importance result() const {
    Importance result{.examples = examples_, .metrics = metrics_};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      result.inputs.push_back({.input = inputs_[i].name,
                               .worse = {interval_of(changes_[i], 0, metric_weights_[0]),
                                         interval_of(changes_[i], 1, metric_weights_[1])}});
    }
    std::ranges::sort(result.inputs, {}, [](const InputImportance& one) {
      const double rise = one.worse[0].mean;
      return std::tuple(std::isnan(rise), std::isnan(rise) ? 0.0 : -rise, one.input);
    });
    return result;
  }

 private:
  std::vector<std::size_t> permutation(std::size_t num_rows,
                                       std::size_t input,
                                       std::size_t repetition) const {
    const RandomStream random{hash64(kPermutationStream, seed_, num_buffers_, input, repetition)};
    std::vector<std::size_t> rows(num_rows);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    for (std::size_t i = num_rows; i > 1; --i) std::swap(rows[i - 1], rows[random.below(i, i)]);
    return rows;
  }

  bool counts(const Metrics& base, std::size_t metric) const {
    return metric == 0 || !std::isnan(base.*metrics_[metric].value);
  }

  /// `input`: what is exchanged; null: nothing.
  Metrics score(const RowBuffer& buffer,
                const ModelInput* input,
                const std::vector<std::size_t>& from) {
    probabilities_.clear();
    labels_.clear();
    weights_.clear();
    std::vector<float> memory;
    for (std::size_t b = 0; b < buffer.batches().size(); ++b) {
      if (input != nullptr) buffer.exchange(b, *input, from, exchanged_);
      const data::Batch& batch = input != nullptr ? exchanged_ : buffer.batches()[b];
      const std::span<const float> scores =
          of_classes(scorer_.score(batch), batch.labels, label_.classes, memory);
      probabilities_.insert(probabilities_.end(), scores.begin(), scores.end());
      labels_.insert(labels_.end(), batch.labels.begin(), batch.labels.end());
      weights_.insert(weights_.end(), batch.weights.begin(), batch.weights.end());
    }
    const CountedRows counted({probabilities_, labels_, weights_}, num_labels_, 0,
                              label_.positive_weight);
    return compute_metrics(counted.rows(), loss_);
  }

  pipeline::Scorer scorer_;
  const std::int64_t num_labels_;
  const data::LabelConfig label_;  // the first
  const job::Loss loss_;
  const Importance::Pair metrics_;
  const std::uint64_t seed_;
  const std::atomic<bool>* const stop_;
  const std::vector<ModelInput> inputs_;
  std::vector<std::vector<Change>> changes_;  // [inputs][repetitions]
  Change metric_weights_ =
      {};  // of the buffers where each metric is defined: AUC with both classes
  std::int64_t examples_ = 0;
  std::uint64_t num_buffers_ = 0;
  data::Batch exchanged_;
  std::vector<float> probabilities_, labels_, weights_;
};

}  // namespace

Importance::Pair metrics_of_importance(job::Loss loss) {
  const WorseMetric logloss = {"logloss", true, &Metrics::logloss};
  switch (loss) {
    case job::Loss::kMse:
      return {WorseMetric{"rmse", true, &Metrics::rmse}, WorseMetric{"mae", true, &Metrics::mae}};
    case job::Loss::kSoftmax:
      return {logloss, WorseMetric{"accuracy", false, &Metrics::accuracy}};
    default:
      return {logloss, WorseMetric{"auc", false, &Metrics::auc}};
  }
}

Importance permutation_importance(const job::JobConfig& config,
                                  const checkpoint::UsedCheckpoint& checkpoint,
                                  const std::atomic<bool>* stop,
                                  const pipeline::MakeNetwork& make_network) {
  LoadedModel loaded(config, checkpoint, make_network);
  const auto source = data::open_batches(loaded.data, loaded.transforms, data::Role::kEval,
                                         {.seed = loaded.config.seed, .stop = stop});
  Measurement measurement(loaded, stop);
  data::PassProgress progress("permuting inputs", source->stats().total_bytes, /*stop=*/nullptr);
  data::Batch batch;
  RowBuffer buffer;
  bool is_over = false;
  while (!is_over) {
    buffer.clear();
    while (buffer.num_rows() < kBufferRows && !is_over) {
      is_over = is_set(stop) || !source->next(batch);
      if (!is_over) buffer.add(batch);
    }
    if (buffer.num_rows() > 0) measurement.add(buffer);
    progress.note(source->stats().bytes);
  }
  if (is_set(stop)) return {};
  Importance importance = measurement.result();
  if (importance.examples == 0) {
    throw Error(ErrorCode::kInvalidData, "no row of the evaluation data counts");
  }
  return importance;
}

}  // namespace satrap::trainer
