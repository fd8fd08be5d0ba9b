#include "satrap/data/label_config.h"

#include <cmath>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr ChangeRule kOtherLabel =
    impossible("the network predicts the label as it was: its outputs would mean something else");

}  // namespace

void LabelConfig::visit(ConfigVisitor& v) {
  v.field("column", column, "Column of the label.");
  v.choice("type", type, kLabelTypes,
           "binary: the label is 0 or 1, and its probability is predicted. number: any number, and "
           "its value is predicted.",
           {.resume = kOtherLabel});
  v.field("positive", positive,
          "Texts that mean 1, such as \">50K\". Empty: the column holds numbers.");
  v.field("negative", negative,
          "Texts that mean 0; a row with any other text is bad. Empty: all that are not positive.");
  v.field(
      "threshold", threshold,
      "Numbers of at least this mean 1, smaller ones 0. Empty: only 0 and 1, false and true are "
      "labels.");
  v.field(
      "classes", classes,
      "The label is one of so many classes, 2 to 1000, and the probability of each is predicted. "
      "The column holds the whole numbers from 0 to classes - 1, or the texts of `values`; a row "
      "with anything else is bad. It must be the only label. 0: there are no classes.",
      {.min = 0, .max = static_cast<double>(kMaxClasses), .resume = kOtherLabel});
  v.field("values", values,
          "The texts of the classes, in their order: as many as `classes`. Empty: their numbers.",
          {.resume = kOtherLabel});
  v.field(
      "positive_weight", positive_weight,
      "Weight of the examples whose label is 1, beside 1 for the others: in the loss and in its "
      "metrics. It multiplies data.schema.weight.",
      {.min = 1e-6, .max = 1e6, .resume = kOtherTraining});
}

bool LabelConfig::allows(float label) const {
  if (is_number()) return std::isfinite(label);
  const float end = has_classes() ? static_cast<float>(classes) : 2.0F;
  return label >= 0.0F && label < end && label == std::floor(label);
}

std::vector<std::string> LabelConfig::class_names() const {
  std::vector<std::string> names = values;
  for (auto c = static_cast<std::int64_t>(names.size()); c < classes; ++c) {
    names.push_back(concat("class_", c));
  }
  return names;
}

void NamedLabelConfig::visit(ConfigVisitor& v) {
  v.field("name", name,
          "Name of the label in logs and files, without control characters; by default the name of "
          "the column.");
  source.visit(v);
  v.field("weight", weight,
          "Factor of the label's loss; the loss of a step is the weighted sum of the labels'.",
          {.min = 1e-6, .max = 1e6, .resume = kOtherTraining});
}

}  // namespace satrap::data
