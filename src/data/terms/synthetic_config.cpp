#include "satrap/data/synthetic_config.h"

#include <algorithm>
#include <cmath>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kMaxCardinality = std::int64_t{1} << 48;

template <class T>
void check_length(const std::string& where,
                  const char* name,
                  const std::vector<T>& values,
                  std::int64_t columns,
                  const char* of) {
  const std::int64_t length = std::ssize(values);
  if (length == 1 || length == columns) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat(where, ": ", name, " must have 1 value or one for each of the ", columns, " ",
                     of, ", got ", length));
}

}  // namespace

void SyntheticConfig::visit(ConfigVisitor& v) {
  v.field("rows", rows, "Training rows.", {.min = 1});
  v.field("eval_rows", eval_rows, "Evaluation rows: those after the training rows.",
          {.min = 0, .resume = kOtherTraining});
  v.field("seed", seed, "Random seed. Another seed gives another click log, with another teacher.");
  v.field("cardinalities", cardinalities,
          "Number of ids of each categorical feature, before `scale`. Default: the 26 features of "
          "Criteo Kaggle.",
          {.min = 1, .max = static_cast<double>(kMaxCardinality)});
  v.field("scale", scale,
          "Factor on the cardinalities. Ids of features that then exceed 2^30 take 54 bits, 16 hex "
          "digits in a Criteo file; others take 32 bits and 8 digits.",
          {.min = 0, .min_exclusive = true});
  v.field(
      "zipf", zipf,
      "Exponent of the popularity of ids: the id of rank k occurs in proportion to k^-zipf. One "
      "value or one per feature; empty: 0.8 to 1.1, spread over the features.",
      {.min = 0, .max = 10});
  v.field("min_ids", min_ids, "Smallest number of ids of a bag. One value or one per feature.",
          {.min = 0, .max = 10'000});
  v.field(
      "max_ids", max_ids,
      "Largest number of ids of a bag; sizes in between are equally likely. One value or one per "
      "feature.",
      {.min = 1, .max = 10'000});
  v.field("empty_rate", empty_rate,
          "Share of rows in which a feature is missing. One value or one per feature.",
          {.min = 0, .max = 1});
  v.field("num_numeric", num_numeric, "Number of numeric columns.", {.min = 0, .max = 10'000});
  v.field("numeric_missing", numeric_missing,
          "Share of rows in which a number is missing. One value or one per column; empty: about "
          "the shares of Criteo Kaggle.",
          {.min = 0, .max = 1});
  v.field("base_rate", base_rate, "Share of positive labels (Criteo: 0.256 Kaggle, 0.03 1 TB).",
          {.min = 0.0001, .max = 0.9999});
  v.field("signal", signal,
          "Standard deviation of the logit of the true probability: how much can be learned.",
          {.min = 0, .max = 20});
  v.field("interactions", interactions,
          "Number of feature pairs whose ids affect the label jointly, beyond their sum.",
          {.min = 0});
  v.field("interaction_share", interaction_share,
          "Share of the logit's variance that comes from the pairs.", {.min = 0, .max = 1});
  v.field("numeric_share", numeric_share,
          "Share of the logit's variance that comes from the numbers.", {.min = 0, .max = 1});
  v.field(
      "drift", drift,
      "Share of the ids of each feature that a new id replaces at some point in the training rows, "
      "popular ids like others.",
      {.min = 0, .max = 1});
  v.field("new_id_rate", new_id_rate,
          "Share of id occurrences whose id occurs only once (and says nothing about the label).",
          {.min = 0, .max = 1});
}

void SyntheticConfig::validate(const std::string& where) const {
  const auto fail = [&](const auto&... what) {
    throw Error(ErrorCode::kInvalidConfig, concat(where, ": ", what...));
  };
  if (cardinalities.empty()) fail("cardinalities must name at least one feature");
  for (std::int64_t f = 0; f < num_features(); ++f) {
    const auto cardinality = static_cast<double>(cardinalities[static_cast<std::size_t>(f)]);
    if (cardinality * scale > static_cast<double>(kMaxCardinality)) {
      fail("cardinalities[", f, "] times scale must be at most 2^48 = ", kMaxCardinality, ", got ",
           cardinality * scale);
    }
  }
  if (!zipf.empty()) check_length(where, "zipf", zipf, num_features(), "features");
  check_length(where, "min_ids", min_ids, num_features(), "features");
  check_length(where, "max_ids", max_ids, num_features(), "features");
  check_length(where, "empty_rate", empty_rate, num_features(), "features");
  if (!numeric_missing.empty()) {
    check_length(where, "numeric_missing", numeric_missing, num_numeric, "numeric columns");
  }
  for (std::int64_t f = 0; f < num_features(); ++f) {
    const std::int64_t least = per_column(min_ids, f), most = per_column(max_ids, f);
    if (least > most) {
      fail("min_ids must not exceed max_ids, feature ", f, " has ", least, " and ", most);
    }
  }
  if (interaction_share + numeric_share > 1.0) {
    fail("interaction_share + numeric_share must be at most 1, got ",
         interaction_share + numeric_share);
  }
}

std::int64_t SyntheticConfig::scaled_cardinality(std::int64_t f) const {
  const auto cardinality = static_cast<double>(cardinalities[static_cast<std::size_t>(f)]);
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>(std::floor(cardinality * scale + 0.5)));
}

}  // namespace satrap::data
