#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace satrap::trainer {

/// Rows that a model has scored: n examples, each with num_labels labels.
struct ScoredRows {
  std::span<const float> probabilities;  // [n, num_labels]: what is predicted, with loss mse the
                                         // value; with classes [n, 2], as of_classes gives it
  std::span<const float> labels;         // [n, num_labels]; NaN: missing
  std::span<const float> weights = {};   // [n], or empty: each is 1
};

/// What metrics take of the predictions for the classes of the only label, [n, num_classes]: for
/// each example the probability of the class that is its label, and the number of the likeliest
/// class, the first of equal ones. In `memory`. Without classes, 0, the predictions themselves.
std::span<const float> of_classes(std::span<const float> predictions,
                                  std::span<const float> labels,
                                  std::int64_t num_classes,
                                  std::vector<float>& memory);

/// The rows that count in the metrics of one of their labels: those with a weight above 0 whose
/// label is not missing, in their order. Refers to `all`, which outlives it; holds a copy only
/// where there are several labels, rows that do not count, or a weight of positives. A job of one
/// label without weights misses none, and is not searched for them.
class CountedRows {
 public:
  /// `positive_weight` is that of the label, by which the weights of its positives are multiplied.
  CountedRows(const ScoredRows& all,
              std::int64_t num_labels,
              std::int64_t label,
              double positive_weight = 1.0);
  CountedRows(const CountedRows&) = delete;  // its rows may be in its own memory
  CountedRows& operator=(const CountedRows&) = delete;

  /// Each array has an element per row that counts; `weights` may be empty.
  const ScoredRows& rows() const { return rows_; }

  /// From values of all examples, [n] or empty, those of the rows that count.
  template <class T>
  std::span<const T> of(std::span<const T> values, std::vector<T>& memory) const {
    if (all_count_ || values.empty()) return values;
    memory.clear();
    for (const std::size_t place : places_) memory.push_back(values[place]);
    return memory;
  }

 private:
  void select(const ScoredRows& all, std::int64_t num_labels, std::int64_t label);
  void weigh_positives(float factor);

  ScoredRows rows_;
  bool all_count_ = true;
  std::vector<std::size_t> places_;  // of those that count, unless all do
  std::vector<float> probabilities_, labels_, weights_;
};

}  // namespace satrap::trainer
