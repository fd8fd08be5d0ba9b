#include "src/trainer/watch.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap::trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

data::Schema schema_of(std::vector<data::LabelConfig> labels) {
  data::Schema schema;
  for (const data::LabelConfig& label : labels) {
    schema.labels.push_back({.name = label.column, .source = label, .weight = 1.0});
  }
  return schema;
}

/// What is said of `count` examples with this label, at the end of the data if not before.
std::vector<std::string> said_of(const data::LabelConfig& label, float value, std::size_t count) {
  TrainingWatch watch(schema_of({label}));
  std::vector<std::string> said = watch.add_labels(std::vector<float>(count, value));
  const std::vector<std::string> later = watch.end_labels();
  said.insert(said.end(), later.begin(), later.end());
  return said;
}

TEST(TrainingWatch, NamesALabelThatNeverChanges) {
  EXPECT_THAT(said_of({.column = "click"}, 0.0F, 150'000),
              ElementsAre(HasSubstr("label 'click' is 0 in all of the first 100000 examples")));
  EXPECT_THAT(said_of({.column = "click"}, 0.0F, 20), ElementsAre(HasSubstr("first 20 examples")));
  EXPECT_THAT(said_of({.column = "click"}, 1.0F, 20),
              ElementsAre(AllOf(HasSubstr("is 1 in all"), HasSubstr("such as -1, are bad rows"))));
  EXPECT_THAT(said_of({.column = "click"}, 1.0F, 0), IsEmpty());
}

TEST(TrainingWatch, NamesTheSettingThatNoRowMeets) {
  EXPECT_THAT(said_of({.column = "y", .positive = {"yes", "Yes"}}, 0.0F, 9),
              ElementsAre(HasSubstr("no row has the text of `positive`, \"yes\" or \"Yes\"")));
  EXPECT_THAT(said_of({.column = "y", .threshold = {4.5}}, 0.0F, 9),
              ElementsAre(HasSubstr("no number is at or above `threshold` 4.5")));
  EXPECT_THAT(said_of({.column = "y", .threshold = {4.5}}, 1.0F, 9),
              ElementsAre(HasSubstr("no number is below `threshold` 4.5")));
}

TEST(TrainingWatch, SaysNothingOfALabelThatChanges) {
  TrainingWatch watch(schema_of({{.column = "y"}}));
  EXPECT_THAT(watch.add_labels(std::vector<float>(99'999, 0.0F)), IsEmpty());
  EXPECT_THAT(watch.add_labels(std::vector<float>{1.0F, 0.0F}), IsEmpty());
  EXPECT_THAT(watch.end_labels(), IsEmpty());
}

TEST(TrainingWatch, JudgesEachOfSeveralLabelsOnce) {
  TrainingWatch watch(schema_of({{.column = "click"}, {.column = "buy"}}));
  EXPECT_THAT(watch.add_labels(std::vector<float>{0, 0, 1, 0}), IsEmpty());
  EXPECT_THAT(watch.end_labels(), ElementsAre(HasSubstr("label 'buy' is 0 in all of the first 2")));
  EXPECT_THAT(watch.end_labels(), IsEmpty());
}

TEST(TrainingWatch, LooksOnlyAtLabelsThatCount) {
  const float missing = std::nanf("");
  TrainingWatch watch(schema_of({{.column = "click"}, {.column = "buy"}, {.column = "like"}}));
  // The only click is missing, the only buy weighs nothing, and likes are missing everywhere.
  watch.add_labels(std::vector<float>{missing, 0, missing, 0, 0, missing, 0, 1, missing},
                   std::vector<float>{1, 2, 0});
  EXPECT_THAT(watch.end_labels(),
              ElementsAre(HasSubstr("label 'click' is 0 in all"), HasSubstr("label 'buy' is 0 in"),
                          HasSubstr("label 'like' is missing or has weight 0 in all")));
}

/// Labels of which a quarter is 1.
std::vector<float> labels(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; i += 4) values[i] = 1.0F;
  return values;
}

TEST(TrainingWatch, NamesANumberOrClassThatNeverChanges) {
  data::LabelConfig number{.column = "price", .type = data::LabelType::kNumber};
  EXPECT_THAT(said_of(number, 2.5F, 20),
              ElementsAre("label 'price' is 2.5 in all of the first 20 examples, so nothing can be "
                          "learned from it"));
  EXPECT_THAT(said_of({.column = "kind", .classes = 3}, 2.0F, 20),
              ElementsAre(HasSubstr("label 'kind' is 2 in all of the first 20 examples")));
  TrainingWatch watch(schema_of({number}));
  watch.add_labels(std::vector<float>{std::nanf(""), 2.5F, 3.5F});
  EXPECT_THAT(watch.end_labels(), IsEmpty());
  TrainingWatch missing(schema_of({number}));
  missing.add_labels(std::vector<float>{std::nanf(""), std::nanf("")});
  EXPECT_THAT(missing.end_labels(), ElementsAre(HasSubstr("is missing or has weight 0")));
}

TEST(TrainingWatch, SaysOnceThatTheSquaredErrorHasRisen) {
  TrainingWatch watch(schema_of({{.column = "price", .type = data::LabelType::kNumber}}));
  const auto of = [](double loss, double r2, std::int64_t examples = 1000) {
    return Metrics{.examples = examples, .loss = loss, .r2 = r2};
  };
  watch.add_labels(labels(1000));
  EXPECT_THAT(watch.add_training(of(4.0, 0.9, 399)), IsEmpty());  // few examples say little
  EXPECT_THAT(watch.add_training(of(4.0, 0.5)), IsEmpty());
  EXPECT_THAT(watch.add_training(of(4.2, 0.46)), IsEmpty());
  EXPECT_THAT(watch.add_training(of(8.0, 0.0)),
              ElementsAre(AllOf(HasSubstr("risen, from 4.0000 to 8.0000"),
                                HasSubstr("(0.500 to 1.000 times"))));
  EXPECT_THAT(watch.add_training(of(80.0, -9.0)), IsEmpty());
}

Metrics window(double loss, double auc, std::int64_t examples = 1000) {
  return {.examples = examples,
          .auc = auc,
          .logloss = loss,
          .ne = 2.0 * loss,
          .calibration = 1.0,
          .loss = loss};
}

TEST(TrainingWatch, SaysOnceThatTheLossHasRisen) {
  TrainingWatch watch(schema_of({{.column = "y"}}));
  watch.add_labels(labels(1000));
  EXPECT_THAT(watch.add_training(window(0.3, 0.5, 799)), IsEmpty());  // 199 positives say little
  EXPECT_THAT(watch.add_training(window(0.6, 0.5)), IsEmpty());
  EXPECT_THAT(watch.add_training(window(0.5, 0.6)), IsEmpty());
  EXPECT_THAT(watch.add_training(window(0.549, 0.6)), IsEmpty());
  EXPECT_THAT(watch.add_training(window(Metrics::kUndefined, 0.6)), IsEmpty());
  EXPECT_THAT(watch.add_training(window(0.56, 0.6)),
              ElementsAre(AllOf(HasSubstr("risen, from 0.5000 to 0.5600"),
                                HasSubstr("(1.000 to 1.120 times"), HasSubstr("learning rates"))));
  EXPECT_THAT(watch.add_training(window(0.9, 0.6)), IsEmpty());
}

TEST(TrainingWatch, SaysOnceThatTheAucOfTrainingIsFarBelow) {
  TrainingWatch watch(schema_of({{.column = "y"}}));
  EXPECT_THAT(watch.add_evaluation(0.9), IsEmpty());  // no report yet
  watch.add_labels(labels(1999));
  watch.add_training(window(0.6, 0.60));
  watch.add_labels(labels(5000));
  EXPECT_THAT(watch.add_evaluation(0.9), IsEmpty());  // some of the first were in the window
  watch.add_training(window(0.6, 0.60));
  EXPECT_THAT(watch.add_evaluation(Metrics::kUndefined), IsEmpty());
  EXPECT_THAT(watch.add_evaluation(0.645), IsEmpty());
  EXPECT_THAT(watch.add_evaluation(0.66),
              ElementsAre(AllOf(HasSubstr("0.6000"), HasSubstr("0.6600"), HasSubstr("staleness"))));
  EXPECT_THAT(watch.add_evaluation(0.9), IsEmpty());
}

}  // namespace
}  // namespace satrap::trainer
