#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "satrap/trainer/counted_rows.h"

namespace satrap::trainer {

/// How well predicted probabilities p match labels y of 0 and 1. Undefined values are NaN (null in
/// JSON files): all of them without examples, `auc` and `ne` with only one class, `calibration` and
/// `ap` without positives. A p that is NaN makes everything NaN. With weights, sums and means are
/// weighted.
struct Metrics {
  static constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

  std::int64_t examples = 0;
  double auc = kUndefined;      // exact, ties count half
  double logloss = kUndefined;  // mean of -log(p) or -log(1 - p), p clipped (see kClip)
  double ne = kUndefined;       // normalised entropy (He et al. 2014, "Practical lessons from
                                // predicting clicks on ads", eq. 3): logloss over that of always
                                // predicting the mean label of these examples; below 1 is better
  double calibration = kUndefined;  // mean p / mean label; 1 is right
  double ap = kUndefined;           // average_precision of core/auc.h
  double brier = kUndefined;        // mean of (p - y)^2 (Brier 1950)
  double weight = 0.0;              // sum of the examples' weights
};

/// Probabilities are clipped to [kClip, 1 - kClip] for the logloss, which is thus at most 15.95 per
/// example. 1 - kClip is representable in float.
inline constexpr float kClip = 0x1.0p-23F;  // 1.2e-7

/// Metrics of a set of examples, all with a label and a weight above 0 (CountedRows). With weights
/// their order changes no bit.
Metrics compute_metrics(const ScoredRows& rows);

/// Keeps the last `capacity` examples for progressive validation, which predicts every example
/// before it is trained on: 8 bytes per example and label, and 4 per example with weights. Adding
/// copies; compute() does the work. One thread at a time.
class WindowedMetrics {
 public:
  explicit WindowedMetrics(std::int64_t capacity, std::int64_t num_labels = 1);  // >= 1

  /// All examples have weights, or none has: in all calls.
  void add(ScoredRows rows);
  Metrics compute(std::int64_t label = 0, double positive_weight = 1.0) const;  // as CountedRows

 private:
  std::size_t num_labels_;
  std::size_t capacity_;
  std::size_t next_ = 0;  // place of the oldest example once the window is full
  std::vector<float> probabilities_, labels_;  // grow to [capacity_, num_labels_], then a ring
  std::vector<float> weights_;                 // likewise [capacity_], or empty
};

}  // namespace satrap::trainer
