#include "satrap/job/label_loss.h"

#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

/// The labels as they are written: of a built-in schema the default, which is 0 or 1.
std::vector<data::NamedLabelConfig> labels_of(const JobConfig& config) {
  const data::SchemaConfig& schema = config.data.schema;
  if (!schema.labels.empty()) return schema.labels;
  return {{.name = schema.label.column, .source = schema.label}};
}

std::string_view what_is(const data::LabelConfig& label) {
  return label.has_classes() ? "one of several classes" : label.is_number() ? "a number" : "0 or 1";
}

bool goes_with(Loss loss, const data::LabelConfig& label) {
  switch (loss) {
    case Loss::kAuto:
      return true;
    case Loss::kBce:
      return label.is_binary();
    case Loss::kMse:
      return !label.has_classes();
    case Loss::kSoftmax:
      return label.has_classes();
  }
  return true;  // not reached
}

std::string_view rule_of(Loss loss) {
  switch (loss) {
    case Loss::kBce:
      return "bce needs labels of 0 and 1";
    case Loss::kMse:
      return "mse needs numbers, or 0 and 1";
    default:
      return "softmax needs a label with `classes`";
  }
}

template <class... Parts>
void require(bool holds, const std::string& key, const Parts&... rule) {
  if (!holds) throw Error(ErrorCode::kInvalidConfig, concat(key, ": ", rule...));
}

/// What is computed of the probabilities of 0 and 1.
void check_what_needs_bce(const JobConfig& config) {
  bool all = true, any = false;
  for (const data::NamedLabelConfig& label : labels_of(config)) {
    const bool is_bce = loss_of(config.model, label.source) == Loss::kBce;
    all = all && is_bce;
    any = any || is_bce;
  }
  constexpr std::string_view kRule =
      "leaves out negatives, and puts probabilities of labels of 0 and 1 right for it: it needs "
      "loss bce; write 1";
  require(all || config.data.train.negatives == 1.0, "data.train.negatives", kRule);
  require(all || config.data.train.negatives_in_files == 1.0, "data.train.negatives_in_files",
          kRule);
  require(any || config.data.group_by.empty(), "data.group_by",
          "the metrics within groups, AUC, NDCG and recall, are of labels of 0 and 1 with "
          "loss bce, and there is none; leave it out");
  require(first_loss(config) == Loss::kBce || !config.train.expect.is_on(), "train.expect.auc",
          "the first label has no AUC, which labels of 0 and 1 with loss "
          "bce have; leave it out");
}

std::string metrics_text(Loss loss) {
  std::string text;
  for (const auto& [word, metric] : kStoppingMetrics) {
    if (has_metric(loss, metric)) text += concat(text.empty() ? "" : ", ", word);
  }
  return text;
}

}  // namespace

Loss loss_of(const ModelConfig& model, const data::LabelConfig& label) {
  if (model.loss != Loss::kAuto) return model.loss;
  return label.has_classes() ? Loss::kSoftmax : label.is_number() ? Loss::kMse : Loss::kBce;
}

Loss first_loss(const JobConfig& config) {
  return loss_of(config.model, labels_of(config).front().source);
}

StoppingMetric default_metric(Loss loss) {
  return loss == Loss::kMse       ? StoppingMetric::kRmse
         : loss == Loss::kSoftmax ? StoppingMetric::kLogloss
                                  : StoppingMetric::kAuc;
}

bool has_metric(Loss loss, StoppingMetric metric) {
  switch (metric) {
    case StoppingMetric::kAuc:
    case StoppingMetric::kGauc:
      return loss == Loss::kBce;
    case StoppingMetric::kLogloss:
    case StoppingMetric::kNe:
      return loss != Loss::kMse;
    case StoppingMetric::kRmse:
    case StoppingMetric::kMae:
      return loss == Loss::kMse;
    case StoppingMetric::kAccuracy:
      return loss == Loss::kSoftmax;
  }
  return false;  // not reached
}

void check_losses(const JobConfig& config) {
  const Loss loss = config.model.loss;
  for (const data::NamedLabelConfig& label : labels_of(config)) {
    const std::string& name = label.name.empty() ? label.source.column : label.name;
    require(goes_with(loss, label.source), "model.loss", rule_of(loss), ", and label '", name,
            "' is ", what_is(label.source), "; write auto, or leave it out");
  }
  check_what_needs_bce(config);
  const EarlyStoppingConfig& early = config.train.early_stopping;
  const Loss first = first_loss(config);
  require(!early.is_on() || has_metric(first, early.metric), "train.early_stopping.metric",
          "a label with loss ", word_of(first, kLosses), " has no ",
          word_of(early.metric, kStoppingMetrics), ", but ", metrics_text(first));
}

}  // namespace satrap::job
