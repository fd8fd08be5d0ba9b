#pragma once

#include <cstdint>
#include <vector>

namespace satrap::data {

/// How well the true probabilities predict the labels: no model can be better on average.
struct BestReachable {
  std::int64_t rows = 0;        // the sums below are over this many rows
  double base_rate = 0;         // mean label
  double auc = 0;               // of the true p against the labels; NaN with one class only
  double logloss = 0;           // of the true p against the labels
  double expected_auc = 0;      // the same over all labels that could have been drawn
  double expected_logloss = 0;  // mean entropy of Bernoulli(p)
};

/// Collects (p, label) of generated rows. One thread at a time.
class BestReachableMeter {
 public:
  /// AUC is taken over every `stride`-th row added, everything else over all rows.
  explicit BestReachableMeter(std::int64_t stride = 1) : stride_(stride) {}

  void add(const std::vector<float>& probabilities, const std::vector<float>& labels);
  BestReachable result() const;

 private:
  std::int64_t stride_;
  std::int64_t rows_ = 0;
  double sum_labels_ = 0, sum_logloss_ = 0, sum_entropy_ = 0;
  std::vector<float> kept_probabilities_, kept_labels_;
};

}  // namespace satrap::data
