#include "src/trainer/row_buffer.h"

namespace satrap::trainer {
namespace {

/// Appends the bag of a feature in a row of `source`.
void append_bag(const data::Batch& source,
                std::int64_t feature,
                std::int64_t row,
                data::Batch& batch) {
  const auto at = static_cast<std::size_t>(feature * source.num_examples + row);
  for (std::int64_t i = source.offsets[at]; i < source.offsets[at + 1]; ++i) {
    const auto id = static_cast<std::size_t>(i);
    batch.ids.push_back(source.ids[id]);
    if (!source.id_weights.empty()) batch.id_weights.push_back(source.id_weights[id]);
  }
  batch.offsets.push_back(static_cast<std::int64_t>(batch.ids.size()));
}

}  // namespace

std::vector<ModelInput> inputs_of(const data::Schema& schema) {
  std::vector<ModelInput> inputs;
  for (std::int64_t f = 0; f < schema.num_features(); ++f) {
    inputs.push_back({.name = schema.features[static_cast<std::size_t>(f)].name, .feature = f});
  }
  for (const data::Schema::NumericInput& number : schema.numeric_inputs) {
    ModelInput& input = inputs.emplace_back();
    input.name = schema.numeric_names[static_cast<std::size_t>(number.output)];
    input.columns = {number.output};
    if (number.config.missing_indicator) input.columns.push_back(number.output + 1);
  }
  return inputs;
}

void RowBuffer::clear() {
  batches_.clear();
  places_.clear();
  begins_.clear();
}

void RowBuffer::add(const data::Batch& batch) {
  begins_.push_back(places_.size());
  for (std::int64_t row = 0; row < batch.num_examples; ++row) {
    places_.push_back({.batch = batches_.size(), .row = row});
  }
  batches_.push_back(batch);
}

void RowBuffer::exchange(std::size_t b,
                         const ModelInput& input,
                         std::span<const std::size_t> from,
                         data::Batch& batch) const {
  std::vector<Place> sources;
  for (const std::size_t row :
       from.subspan(begins_[b], static_cast<std::size_t>(batches_[b].num_examples))) {
    sources.push_back(places_[row]);
  }
  batch = batches_[b];
  if (input.feature < 0) {
    exchange_numbers(input, sources, batch);
  } else {
    exchange_bags(batches_[b], input.feature, sources, batch);
  }
}

void RowBuffer::exchange_numbers(const ModelInput& input,
                                 std::span<const Place> from,
                                 data::Batch& batch) const {
  for (std::size_t row = 0; row < from.size(); ++row) {
    const data::Batch& source = batches_[from[row].batch];
    for (const std::int64_t column : input.columns) {
      const auto to = static_cast<std::int64_t>(row) * batch.num_numeric + column;
      batch.numeric[static_cast<std::size_t>(to)] =
          source.numeric[static_cast<std::size_t>(from[row].row * source.num_numeric + column)];
    }
  }
}

void RowBuffer::exchange_bags(const data::Batch& own,
                              std::int64_t feature,
                              std::span<const Place> from,
                              data::Batch& batch) const {
  batch.ids.clear();
  batch.id_weights.clear();
  batch.offsets.assign(1, 0);
  for (std::int64_t f = 0; f < own.num_features; ++f) {
    for (std::size_t row = 0; row < from.size(); ++row) {
      if (f == feature) {
        append_bag(batches_[from[row].batch], f, from[row].row, batch);
      } else {
        append_bag(own, f, static_cast<std::int64_t>(row), batch);
      }
    }
  }
}

}  // namespace satrap::trainer
