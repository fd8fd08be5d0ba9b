#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "satrap/job/model_config.h"
#include "satrap/trainer/counted_rows.h"

namespace satrap::trainer {

/// How well predictions p match labels y: probabilities of 0 and 1 (loss bce), values (mse), or
/// the probabilities of classes (softmax). A loss has those that metrics_of lists; the others are
/// undefined. Undefined values are NaN (null in JSON files): all of them without examples, `auc`,
/// `ne` and `r2` if all labels are the same, `calibration` and `ap` without positives. A p that is
/// NaN makes everything NaN. With weights, sums and means are weighted.
struct Metrics {
  static constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

  std::int64_t examples = 0;
  double auc = kUndefined;      // exact, ties count half
  double logloss = kUndefined;  // mean of -log(p) or -log(1 - p), p clipped (see kClip); of classes
                                // of -log of that of the label's
  double ne = kUndefined;       // normalised entropy (He et al. 2014, "Practical lessons from
                                // predicting clicks on ads", eq. 3): logloss over that of always
                                // predicting the mean label, or the shares of the classes, of
                                // these examples; below 1 is better
  double calibration = kUndefined;  // mean p / mean label; 1 is right
  double ap = kUndefined;           // average_precision of core/auc.h
  double brier = kUndefined;        // mean of (p - y)^2 (Brier 1950)
  double weight = 0.0;              // sum of the examples' weights
  double loss = kUndefined;         // logloss, or mean of (p - y)^2
  double rmse = kUndefined;         // root of the mean of (p - y)^2
  double mae = kUndefined;          // mean of |p - y|
  double r2 = kUndefined;  // 1 - mean of (p - y)^2 over that of always predicting the mean label
  double accuracy = kUndefined;  // share of the examples whose likeliest class is the label
};

/// A metric, and its name in files.
struct NamedMetric {
  std::string_view name;
  double Metrics::* value;
};

/// The metrics of a label with this loss, as an evaluation has them.
std::span<const NamedMetric> metrics_of(job::Loss loss);
/// The first ones, which a slice has.
std::span<const NamedMetric> slice_metrics_of(job::Loss loss);

/// Probabilities are clipped to [kClip, 1 - kClip] for the logloss, which is thus at most 15.95 per
/// example. 1 - kClip is representable in float.
inline constexpr float kClip = 0x1.0p-23F;  // 1.2e-7

/// Metrics of a set of examples, all with a label and a weight above 0 (CountedRows). Those of 0
/// and 1 with weights have the same bits in any order of the examples.
Metrics compute_metrics(const ScoredRows& rows, job::Loss loss = job::Loss::kBce);

/// Keeps the last `capacity` examples for progressive validation, which predicts every example
/// before it is trained on: 8 bytes per example and label, 12 with classes, and 4 per example with
/// weights. Adding copies; compute() does the work. One thread at a time.
class WindowedMetrics {
 public:
  /// `has_classes`: the only label does.
  explicit WindowedMetrics(std::int64_t capacity,
                           std::int64_t num_labels = 1,
                           bool has_classes = false);  // capacity >= 1

  /// All examples have weights, or none has: in all calls.
  void add(ScoredRows rows);
  Metrics compute(std::int64_t label = 0,
                  double positive_weight = 1.0,  // as CountedRows
                  job::Loss loss = job::Loss::kBce) const;

 private:
  std::size_t num_labels_, num_scores_;  // of an example
  std::size_t capacity_;
  std::size_t next_ = 0;  // place of the oldest example once the window is full
  // They grow to [capacity_, num_scores_] and [capacity_, num_labels_], and are then rings.
  std::vector<float> probabilities_, labels_;
  std::vector<float> weights_;  // likewise [capacity_], or empty
};

}  // namespace satrap::trainer
