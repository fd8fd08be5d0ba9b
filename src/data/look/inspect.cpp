#include "satrap/data/inspect.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/data/pass_progress.h"
#include "src/data/look/column_stats.h"
#include "src/data/look/label_stats.h"
#include "src/data/passes/batch_assembler.h"
#include "src/data/rows/row_filler.h"

namespace satrap::data {
namespace {

std::string show_bag(const RowBlock::Bags& bags,
                     std::int64_t row,
                     const FeatureConfig& feature,
                     const IdTexts& texts) {
  const auto begin = static_cast<std::size_t>(bags.offsets[static_cast<std::size_t>(row)]);
  const auto end = static_cast<std::size_t>(bags.offsets[static_cast<std::size_t>(row) + 1]);
  if (begin == end) return "-";
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) text += ' ';
    text += show_id(bags.ids[i], feature, texts);
    if (!bags.weights.empty()) text += fmt::format(":{}", bags.weights[i]);
  }
  return text;
}

std::size_t longest(const Schema& schema) {
  std::size_t width = 8;
  for (const auto& number : schema.raw_numeric) width = std::max(width, number.column.size());
  for (const auto& input : schema.numeric_inputs) width = std::max(width, input.config.name.size());
  for (const SchemaFeature& feature : schema.features) width = std::max(width, feature.name.size());
  return width;
}

/// "label 1", or for several labels "click 1, buy 0".
std::string show_labels(const Schema& schema, const RowBlock& block, std::int64_t row) {
  const float* const labels = block.labels.data() + row * block.num_labels;
  if (block.num_labels == 1) return fmt::format("label {}", labels[0]);
  std::string text;
  for (std::size_t l = 0; l < schema.labels.size(); ++l) {
    text += fmt::format("{}{} ", l > 0 ? ", " : "", schema.labels[l].name);
    text += std::isnan(labels[l]) ? "missing" : fmt::format("{}", labels[l]);
  }
  return text;
}

/// Calls use(block, r) for the first rows, all if max_rows is 0. Returns their number.
template <class Use>
std::int64_t for_each_row(RowBlockSource& rows, std::int64_t max_rows, const Use& use) {
  RowBlock block;
  std::int64_t count = 0;
  while ((max_rows == 0 || count < max_rows) && rows.next(block)) {
    for (std::int64_t r = 0; r < block.num_rows && (max_rows == 0 || count < max_rows); ++r) {
      use(block, r);
      ++count;
    }
  }
  return count;
}

/// Rows as the model gets them.
class TransformedRows {
 public:
  TransformedRows(const Schema& schema, const FittedTransforms& transforms)
      : assembler_(schema, transforms) {}

  /// The batch of one row; valid until the next call.
  const Batch& of(const RowBlock& block, std::int64_t row) {
    const RowPiece piece{&block, row, row + 1};
    assembler_.assemble({&piece, 1}, batch_);
    return batch_;
  }

 private:
  BatchAssembler assembler_;
  Batch batch_;
};

/// Nothing if the training data cannot be read to fit them.
std::optional<FittedTransforms> transforms_of(const Dataset& data, std::int64_t seed) {
  try {
    return fit_transforms(data, seed);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_changed(const NumericConfig& input) {
  return input.transform != Transform::kNone || !input.clip.empty();
}

/// " -> 0.53", if the transform changes the number.
std::string show_input(const Schema::NumericInput& input, const Batch& batch) {
  if (!is_changed(input.config)) return "";
  return fmt::format(" -> {:.6g}", batch.numeric[static_cast<std::size_t>(input.output)]);
}

/// The same for each input made of this number alone.
std::string show_inputs(const Schema& schema, std::size_t raw, const Batch& batch) {
  std::string text;
  for (const Schema::NumericInput& input : schema.numeric_inputs) {
    const bool is_made_of_it = static_cast<std::size_t>(input.raw) == raw;
    if (is_made_of_it && !input.config.is_age()) text += show_input(input, batch);
  }
  return text;
}

std::string show_number(double value) { return std::isnan(value) ? "-" : fmt::format("{}", value); }

/// The ids of a feature that is made from other values, in the batch of one row.
std::string show_made(const Batch& batch, std::int64_t feature, const char* format) {
  const auto f = static_cast<std::size_t>(feature);
  std::string text;
  for (auto i = batch.offsets[f]; i < batch.offsets[f + 1]; ++i) {
    const std::uint64_t id = batch.ids[static_cast<std::size_t>(i)];
    text += text.empty() ? "" : " ";
    text += id == kMissingId ? "(missing)" : fmt::format(fmt::runtime(format), id);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

std::string describe_head(const Dataset& data,
                          Role role,
                          std::int64_t num_rows,
                          std::int64_t seed) {
  if (num_rows <= 0) return "";
  const Schema& schema = data.schema();
  const auto transforms = transforms_of(data, seed);
  std::optional<TransformedRows> transformed;
  if (transforms) transformed.emplace(schema, *transforms);
  IdTexts texts;
  const auto rows = open_rows(data, role, {.texts = &texts});
  const std::size_t width = longest(schema);
  std::string text;
  for_each_row(*rows, num_rows, [&](const RowBlock& block, std::int64_t r) {
    const auto row = static_cast<std::size_t>(r);
    const Batch* const batch = transformed ? &transformed->of(block, r) : nullptr;
    text += fmt::format("row {}: {}\n", block.row_number(r), show_labels(schema, block, r));
    const auto add = [&](const std::string& name, const std::string& value) {
      text += fmt::format("  {:<{}}  {}\n", name, width, value);
    };
    for (std::size_t i = 0; i < schema.raw_numeric.size(); ++i) {
      const double value = block.numeric[i][row];
      add(schema.raw_numeric[i].column,
          (schema.raw_numeric[i].is_time ? show_time(value) : show_number(value)) +
              (batch == nullptr ? "" : show_inputs(schema, i, *batch)));
    }
    for (const Schema::NumericInput& input : schema.numeric_inputs) {
      if (!input.config.is_age()) continue;
      add(input.config.name, show_number(number_of_row(input, block, r)) +
                                 (batch == nullptr ? "" : show_input(input, *batch)));
    }
    if (batch != nullptr) {
      for (const auto& feature : schema.bucketed) {
        add(feature.config.name, show_made(*batch, feature.feature, "range {}"));
      }
      for (const auto& feature : schema.dated) {
        add(feature.config.name, show_made(*batch, feature.feature, "{}"));
      }
      for (const auto& feature : schema.crosses) {
        add(feature.config.name, show_made(*batch, feature.feature, "{:016x}"));
      }
    }
    for (std::size_t i = 0; i < schema.id_columns.size(); ++i) {
      const FeatureConfig& feature = schema.id_columns[i].config;
      add(feature.name, show_bag(block.bags[i], r, feature, texts));
    }
  });
  return text;
}

namespace {

/// What the passes over the rows have found of the numbers.
struct NumberTable {
  std::vector<NumberStats> raw;           // [schema.raw_numeric]
  std::vector<NumberStats> ages, inputs;  // [schema.numeric_inputs]
  bool has_inputs = false;

  explicit NumberTable(const Schema& schema)
      : raw(schema.raw_numeric.size()), ages(schema.numeric_inputs.size()), inputs(ages.size()) {}

  /// `batch`: of the row; null: no number is changed.
  void add(const Schema& schema, const RowBlock& block, std::int64_t row, const Batch* batch) {
    for (std::size_t i = 0; i < raw.size(); ++i) {
      raw[i].add(block.numeric[i][static_cast<std::size_t>(row)]);
    }
    has_inputs = has_inputs || batch != nullptr;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Schema::NumericInput& input = schema.numeric_inputs[i];
      const double number = number_of_row(input, block, row);
      if (input.config.is_age()) ages[i].add(number);
      if (batch == nullptr || std::isnan(number)) continue;
      inputs[i].add(static_cast<double>(batch->numeric[static_cast<std::size_t>(input.output)]));
    }
  }

  std::string text(const Schema& schema, std::size_t width, std::int64_t num_rows) const {
    if (raw.empty()) return "";
    std::string text = fmt::format("\n{:<{}} {:>9} {:>11} {:>11} {:>11} {:>11}\n", "number", width,
                                   "missing", "min", "mean", "stddev", "max");
    const auto add_input = [&](std::size_t k) {
      const NumericConfig& input = schema.numeric_inputs[k].config;
      if (!has_inputs || !is_changed(input)) return;
      const std::string_view name =
          input.transform == Transform::kNone ? "clip" : word_of(input.transform, kTransforms);
      text += inputs[k].line(concat("-> ", name), width, num_rows);
    };
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const Schema::RawNumber& number = schema.raw_numeric[i];
      text += number.is_time ? raw[i].line_of_times(number.column, width, num_rows)
                             : raw[i].line(number.column, width, num_rows);
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const Schema::NumericInput& input = schema.numeric_inputs[k];
        const bool is_made_of_it = static_cast<std::size_t>(input.raw) == i;
        if (is_made_of_it && !input.config.is_age()) add_input(k);
      }
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const NumericConfig& input = schema.numeric_inputs[k].config;
      if (!input.is_age()) continue;
      text += ages[k].line(input.name, width, num_rows);
      add_input(k);
    }
    return text;
  }
};

}  // namespace

std::string describe_stats(const Dataset& data,
                           Role role,
                           std::int64_t max_rows,
                           std::int64_t seed) {
  const Schema& schema = data.schema();
  const auto transforms = transforms_of(data, seed);
  std::optional<TransformedRows> transformed;
  const bool any_changed = std::ranges::any_of(schema.numeric_inputs,
                                               [](const auto& i) { return is_changed(i.config); });
  if (transforms && any_changed) transformed.emplace(schema, *transforms);
  IdTexts texts;
  const auto rows = open_rows(data, role, {.texts = &texts});
  NumberTable numbers(schema);
  std::vector<IdStats> ids(schema.id_columns.size());
  LabelStats labels(schema);
  PassProgress progress("reading rows", rows->stats().total_bytes, /*stop=*/nullptr);
  const std::int64_t num_rows =
      for_each_row(*rows, max_rows, [&](const RowBlock& block, std::int64_t r) {
        const auto row = static_cast<std::size_t>(r);
        if (r == 0) progress.note(rows->stats().bytes);
        labels.add(block, row);
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i].add(block.bags[i], r);
        numbers.add(schema, block, r, transformed ? &transformed->of(block, r) : nullptr);
      });
  if (num_rows == 0) throw Error(ErrorCode::kInvalidData, "no row can be used");

  std::size_t width = longest(schema);
  for (const Schema::NumericInput& input : schema.numeric_inputs) {
    if (input.config.transform != Transform::kNone) {
      const std::size_t size = word_of(input.config.transform, kTransforms).size();
      width = std::max(width, size + 3);  // "-> zscore"
    }
  }
  std::string text =
      fmt::format("{} rows, {}, {} bad rows\n", num_rows, labels.text(), rows->stats().bad_rows);
  text += numbers.text(schema, width, num_rows);
  if (!ids.empty()) {
    text += fmt::format("\n{:<{}} {:>9} {:>9} {:>11}  {}\n", "feature", width, "empty", "ids/row",
                        "distinct", "most frequent");
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const FeatureConfig& feature = schema.id_columns[i].config;
    text += ids[i].line(feature.name, width, num_rows, feature, texts);
  }
  return text;
}

}  // namespace satrap::data
