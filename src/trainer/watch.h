#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "satrap/data/schema.h"
#include "satrap/trainer/metrics.h"

namespace satrap::trainer {

/// Notices what a user should look at though training goes on, and says each once:
///  - a label with the same value in the first kFirstExamples examples, or in all of them;
///  - a training loss that has risen;
///  - an AUC of training, without the first examples, far below that of evaluation.
/// Messages are returned, for the log. One thread.
class TrainingWatch {
 public:
  explicit TrainingWatch(const data::Schema& schema);

  static constexpr std::int64_t kFirstExamples = 100'000;

  /// A step's labels, [n, num_labels], NaN where missing, and the weights of its examples, [n] or
  /// empty. Only what counts in the loss is looked at.
  std::vector<std::string> add_labels(std::span<const float> labels,
                                      std::span<const float> weights = {});

  /// There are no more examples.
  std::vector<std::string> end_labels();

  /// The metrics of the first label over the latest examples, at a report.
  std::vector<std::string> add_training(const Metrics& window);

  /// Its AUC on the evaluation data, after such a report.
  std::vector<std::string> add_evaluation(double auc);

 private:
  std::string describe(std::size_t label) const;

  const std::vector<data::NamedLabelConfig> labels_;
  const bool lacks_negatives_;
  std::int64_t num_examples_ = 0;  // whose labels have been counted
  // [num_labels]; of a number or class: those that differ from the first, and the others.
  std::vector<std::int64_t> num_positive_, num_negative_;
  std::vector<float> first_;   // [num_labels], once there is one
  std::int64_t num_seen_ = 0;  // in all
  bool has_judged_labels_ = false, has_risen_ = false, is_behind_ = false;
  bool has_first_ = false;  // the window of last_ has some of the first examples
  Metrics best_, last_;     // of the reports with enough examples
};

}  // namespace satrap::trainer
