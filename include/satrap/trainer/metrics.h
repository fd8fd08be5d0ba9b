#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace satrap::trainer {

/// How well predicted probabilities p match labels y of 0 and 1. Undefined values are NaN (null in
/// JSON files): all of them without examples, `auc` and `ne` with only one class, `calibration`
/// without positives. A p that is NaN makes everything NaN.
struct Metrics {
  static constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

  std::int64_t examples = 0;
  double auc = kUndefined;      // exact, ties count half
  double logloss = kUndefined;  // mean of -log(p) or -log(1 - p), p clipped (see kClip)
  double ne = kUndefined;       // normalised entropy (He et al. 2014, "Practical lessons from
                                // predicting clicks on ads", eq. 3): logloss over that of always
                                // predicting the mean label of these examples; below 1 is better
  double calibration = kUndefined;  // mean p / mean label; 1 is right
};

/// Probabilities are clipped to [kClip, 1 - kClip] for the logloss, which is thus at most 15.95 per
/// example. 1 - kClip is representable in float.
inline constexpr float kClip = 0x1.0p-23F;  // 1.2e-7

/// Metrics of a set of examples.
Metrics compute_metrics(std::span<const float> probabilities, std::span<const float> labels);

/// The values of one of several labels, [n, num_labels]: a copy in `memory` or, for a single label,
/// the values themselves.
std::span<const float> values_of_label(std::span<const float> values,
                                       std::int64_t num_labels,
                                       std::int64_t label,
                                       std::vector<float>& memory);

/// Keeps the last `capacity` examples (8 bytes per example and label) for progressive validation,
/// which predicts every example before it is trained on. Adding copies; compute() does the work.
/// One thread at a time.
class WindowedMetrics {
 public:
  explicit WindowedMetrics(std::int64_t capacity, std::int64_t num_labels = 1);  // >= 1

  /// Both [n, num_labels].
  void add(std::span<const float> probabilities, std::span<const float> labels);
  Metrics compute(std::int64_t label = 0) const;

 private:
  std::int64_t num_labels_;
  std::size_t capacity_;  // in values: num_labels_ of each example
  std::size_t next_ = 0;  // place of the oldest example once the window is full
  std::vector<float> probabilities_, labels_;  // grow to [capacity_], then a ring
};

}  // namespace satrap::trainer
