#include "src/trainer/constant_inputs.h"

#include <algorithm>
#include <span>

namespace satrap::trainer {
namespace {

/// The ids of a feature in an example.
std::span<const std::uint64_t> bag_of(const data::Batch& batch,
                                      std::int64_t feature,
                                      std::int64_t example) {
  const auto at = static_cast<std::size_t>(feature * batch.num_examples + example);
  const auto begin = static_cast<std::size_t>(batch.offsets[at]);
  const auto end = static_cast<std::size_t>(batch.offsets[at + 1]);
  return std::span(batch.ids).subspan(begin, end - begin);
}

}  // namespace

ConstantInputs::ConstantInputs(const data::Schema& schema) {
  for (const data::Schema::NumericInput& input : schema.numeric_inputs) {
    numbers_.push_back({input.config.name, input.output});
  }
  for (std::int64_t f = 0; f < schema.num_features(); ++f) {
    features_.push_back({schema.features[static_cast<std::size_t>(f)].name, f});
  }
}

void ConstantInputs::add(const data::Batch& batch) {
  if (batch.num_examples == 0) return;
  if (!has_begun_) begin(batch);
  std::erase_if(numbers_, [&](const Number& number) { return changes(number, batch); });
  std::erase_if(features_, [&](const Feature& feature) { return changes(feature, batch); });
}

void ConstantInputs::begin(const data::Batch& batch) {
  has_begun_ = true;
  for (Number& number : numbers_) {
    number.value = batch.numeric[static_cast<std::size_t>(number.column)];
  }
  for (Feature& feature : features_) {
    const auto bag = bag_of(batch, feature.number, 0);
    feature.bag.assign(bag.begin(), bag.end());
  }
}

bool ConstantInputs::changes(const Number& number, const data::Batch& batch) {
  const auto stride = static_cast<std::size_t>(batch.num_numeric);
  for (auto at = static_cast<std::size_t>(number.column); at < batch.numeric.size(); at += stride) {
    if (batch.numeric[at] != number.value) return true;
  }
  return false;
}

bool ConstantInputs::changes(const Feature& feature, const data::Batch& batch) {
  for (std::int64_t r = 0; r < batch.num_examples; ++r) {
    if (!std::ranges::equal(bag_of(batch, feature.number, r), feature.bag)) return true;
  }
  return false;
}

std::vector<std::string> ConstantInputs::names() const {
  std::vector<std::string> names;
  if (!has_begun_) return names;
  for (const Number& number : numbers_) names.push_back(number.name);
  for (const Feature& feature : features_) names.push_back(feature.name);
  return names;
}

}  // namespace satrap::trainer
