#include "satrap/data/inspect.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/data/pass_progress.h"
#include "src/data/batch_assembler.h"
#include "src/data/distinct_estimate.h"
#include "src/data/row_filler.h"

namespace satrap::data {
namespace {

constexpr std::size_t kMaxExactIds = 65'536;
constexpr std::size_t kShownIds = 3;

/// Of a string: its text, if it is known, and its hash.
std::string show_id(std::uint64_t id, const FeatureConfig& feature, const IdTexts& texts) {
  if (id == kMissingId && feature.missing == "own_id") return "(missing)";
  if (feature.type == "string") {
    const std::string text = texts.find(id);
    if (!text.empty()) return fmt::format("{} ({:016x})", text, id);
  }
  if (feature.type == "int") {
    const std::string text = texts.find(id);
    return text.empty() ? fmt::format("{}", static_cast<std::int64_t>(id)) : text;
  }
  if (feature.type == "hex" && id <= 0xFFFFFFFFU) return fmt::format("{:08x}", id);
  return fmt::format("{:016x}", id);
}

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
  for (const std::string& name : schema.raw_numeric) width = std::max(width, name.size());
  for (const SchemaFeature& feature : schema.features) width = std::max(width, feature.name.size());
  return width;
}

/// "label 1", or for several labels "click 1, buy 0".
std::string show_labels(const Schema& schema, const RowBlock& block, std::int64_t row) {
  const float* const labels = block.labels.data() + row * block.num_labels;
  if (block.num_labels == 1) return fmt::format("label {}", labels[0]);
  std::string text;
  for (std::size_t l = 0; l < schema.labels.size(); ++l) {
    text += fmt::format("{}{} {}", l > 0 ? ", " : "", schema.labels[l].name, labels[l]);
  }
  return text;
}

/// "3.2000% positive", or for several labels "click 3.2000%, buy 0.1000% positive".
std::string show_shares(const Schema& schema,
                        const std::vector<std::int64_t>& num_positive,
                        std::int64_t num_rows) {
  std::string text;
  for (std::size_t l = 0; l < num_positive.size(); ++l) {
    const double share = static_cast<double>(num_positive[l]) / static_cast<double>(num_rows);
    const std::string name = num_positive.size() > 1 ? schema.labels[l].name + " " : "";
    text += fmt::format("{}{}{:.4f}%", l > 0 ? ", " : "", name, 100.0 * share);
  }
  return text + " positive";
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

struct NumberStats {
  std::int64_t count = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double sum_squares = 0;  // of differences to the mean (Welford 1962)

  void add(double x) {
    if (std::isnan(x)) return;
    ++count;
    min = std::min(min, x);
    max = std::max(max, x);
    const double difference = x - mean;
    mean += difference / static_cast<double>(count);
    sum_squares += difference * (x - mean);
  }
};

class IdStats {
 public:
  void add(const RowBlock::Bags& bags, std::int64_t row) {
    const auto begin = static_cast<std::size_t>(bags.offsets[static_cast<std::size_t>(row)]);
    const auto end = static_cast<std::size_t>(bags.offsets[static_cast<std::size_t>(row) + 1]);
    if (begin == end) ++num_empty_;
    num_ids_ += static_cast<std::int64_t>(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      estimate_.add(bags.ids[i]);
      if (exact_) ++counts_[bags.ids[i]];
    }
    if (counts_.size() > kMaxExactIds) {
      exact_ = false;
      counts_ = {};
    }
  }

  std::string line(std::string_view name,
                   std::size_t width,
                   std::int64_t num_rows,
                   const FeatureConfig& feature,
                   const IdTexts& texts) const {
    const auto rows = static_cast<double>(num_rows);
    const std::string distinct =
        exact_ ? fmt::format("{}", counts_.size()) : fmt::format("~{:.0f}", estimate_.count());
    return fmt::format("{:<{}} {:>8.2f}% {:>9.2f} {:>11}  {}\n", name, width,
                       100.0 * static_cast<double>(num_empty_) / rows,
                       static_cast<double>(num_ids_) / rows, distinct,
                       most_frequent(feature, texts));
  }

 private:
  std::string most_frequent(const FeatureConfig& feature, const IdTexts& texts) const {
    std::vector<std::pair<std::int64_t, std::uint64_t>> sorted;
    for (const auto& [id, count] : counts_) sorted.emplace_back(-count, id);
    const auto shown = static_cast<std::ptrdiff_t>(std::min(kShownIds, sorted.size()));
    std::partial_sort(sorted.begin(), sorted.begin() + shown, sorted.end());
    std::string text;
    for (std::ptrdiff_t i = 0; i < shown; ++i) {
      const auto& [negative_count, id] = sorted[static_cast<std::size_t>(i)];
      const double share = -static_cast<double>(negative_count) / static_cast<double>(num_ids_);
      text += fmt::format("{}{} {:.1f}%", i > 0 ? ", " : "", show_id(id, feature, texts),
                          100.0 * share);
    }
    return text;
  }

  std::int64_t num_empty_ = 0;
  std::int64_t num_ids_ = 0;
  bool exact_ = true;
  std::unordered_map<std::uint64_t, std::int64_t> counts_;
  DistinctEstimate estimate_;
};

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
std::optional<FittedTransforms> transforms_of(const DataConfig& config,
                                              const Schema& schema,
                                              std::int64_t seed) {
  try {
    return fit_transforms(config, schema, seed);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_changed(const NumericConfig& input) {
  return input.transform != "none" || !input.clip.empty();
}

/// " -> 0.53", for each input made of this number whose transform changes it.
std::string show_inputs(const Schema& schema, std::size_t raw, const Batch& batch) {
  std::string text;
  for (const Schema::NumericInput& input : schema.numeric_inputs) {
    if (static_cast<std::size_t>(input.raw) != raw || !is_changed(input.config)) continue;
    text += fmt::format(" -> {:.6g}", batch.numeric[static_cast<std::size_t>(input.output)]);
  }
  return text;
}

std::string show_number(double value) { return std::isnan(value) ? "-" : fmt::format("{}", value); }

}  // namespace

std::string describe_head(const DataConfig& config,
                          const Schema& schema,
                          Role role,
                          std::int64_t num_rows,
                          std::int64_t seed) {
  if (num_rows <= 0) return "";
  const auto transforms = transforms_of(config, schema, seed);
  std::optional<TransformedRows> transformed;
  if (transforms) transformed.emplace(schema, *transforms);
  IdTexts texts;
  const auto rows = open_rows(config, schema, role, {.texts = &texts});
  const std::size_t width = longest(schema);
  std::string text;
  for_each_row(*rows, num_rows, [&](const RowBlock& block, std::int64_t r) {
    const auto row = static_cast<std::size_t>(r);
    const Batch* const batch = transformed ? &transformed->of(block, r) : nullptr;
    text += fmt::format("row {}: {}\n", block.row_number(r), show_labels(schema, block, r));
    for (std::size_t i = 0; i < schema.raw_numeric.size(); ++i) {
      text += fmt::format("  {:<{}}  {}{}\n", schema.raw_numeric[i], width,
                          show_number(block.numeric[i][row]),
                          batch == nullptr ? "" : show_inputs(schema, i, *batch));
    }
    for (const Schema::Bucketed& feature : schema.bucketed) {
      if (batch == nullptr) break;
      const auto f = static_cast<std::size_t>(feature.feature);
      const bool is_empty = batch->offsets[f] == batch->offsets[f + 1];
      const auto id = is_empty ? 0 : batch->ids[static_cast<std::size_t>(batch->offsets[f])];
      text += fmt::format("  {:<{}}  {}\n", feature.config.name, width,
                          is_empty           ? "-"
                          : id == kMissingId ? "(missing)"
                                             : fmt::format("range {}", id));
    }
    for (std::size_t i = 0; i < schema.id_columns.size(); ++i) {
      const FeatureConfig& feature = schema.id_columns[i].config;
      text += fmt::format("  {:<{}}  {}\n", feature.name, width,
                          show_bag(block.bags[i], r, feature, texts));
    }
  });
  return text;
}

namespace {

std::string stats_line(const std::string& name,
                       std::size_t width,
                       const NumberStats& stats,
                       std::int64_t num_rows) {
  const auto count = static_cast<double>(stats.count);
  std::string text = fmt::format("{:<{}} {:>8.2f}%", name, width,
                                 100.0 * (1.0 - count / static_cast<double>(num_rows)));
  if (stats.count > 0) {
    text += fmt::format(" {:>11.6g} {:>11.6g} {:>11.6g} {:>11.6g}", stats.min, stats.mean,
                        std::sqrt(stats.sum_squares / count), stats.max);
  }
  return text + '\n';
}

}  // namespace

std::string describe_stats(const DataConfig& config,
                           const Schema& schema,
                           Role role,
                           std::int64_t max_rows,
                           std::int64_t seed) {
  const auto transforms = transforms_of(config, schema, seed);
  std::optional<TransformedRows> transformed;
  const bool any_changed = std::ranges::any_of(schema.numeric_inputs,
                                               [](const auto& i) { return is_changed(i.config); });
  if (transforms && any_changed) transformed.emplace(schema, *transforms);
  IdTexts texts;
  const auto rows = open_rows(config, schema, role, {.texts = &texts});
  std::vector<NumberStats> numbers(schema.raw_numeric.size());
  std::vector<NumberStats> inputs(schema.numeric_inputs.size());
  std::vector<IdStats> ids(schema.id_columns.size());
  std::vector<std::int64_t> num_positive(schema.labels.size());
  PassProgress progress("reading rows", rows->stats().total_bytes, /*stop=*/nullptr);
  const std::int64_t num_rows =
      for_each_row(*rows, max_rows, [&](const RowBlock& block, std::int64_t r) {
        const auto row = static_cast<std::size_t>(r);
        if (r == 0) progress.note(rows->stats().bytes);
        for (std::size_t l = 0; l < num_positive.size(); ++l) {
          num_positive[l] += block.labels[row * num_positive.size() + l] > 0.0F ? 1 : 0;
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].add(block.numeric[i][row]);
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i].add(block.bags[i], r);
        if (!transformed) return;
        const Batch& batch = transformed->of(block, r);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          const Schema::NumericInput& input = schema.numeric_inputs[i];
          if (std::isnan(block.numeric[static_cast<std::size_t>(input.raw)][row])) continue;
          inputs[i].add(static_cast<double>(batch.numeric[static_cast<std::size_t>(input.output)]));
        }
      });
  if (num_rows == 0) throw Error(ErrorCode::kInvalidData, "no row can be used");

  std::size_t width = longest(schema);
  for (const Schema::NumericInput& input : schema.numeric_inputs) {
    if (input.config.transform != "none") {
      width = std::max(width, input.config.transform.size() + 3);  // "-> zscore"
    }
  }
  std::string text =
      fmt::format("{} rows, {}, {} bad rows\n", num_rows,
                  show_shares(schema, num_positive, num_rows), rows->stats().bad_rows);
  if (!numbers.empty()) {
    text += fmt::format("\n{:<{}} {:>9} {:>11} {:>11} {:>11} {:>11}\n", "number", width, "missing",
                        "min", "mean", "stddev", "max");
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += stats_line(schema.raw_numeric[i], width, numbers[i], num_rows);
    for (std::size_t k = 0; k < inputs.size() && transformed; ++k) {
      const Schema::NumericInput& input = schema.numeric_inputs[k];
      if (static_cast<std::size_t>(input.raw) != i || !is_changed(input.config)) continue;
      const std::string& transform = input.config.transform;
      text += stats_line("-> " + (transform == "none" ? "clip" : transform), width, inputs[k],
                         num_rows);
    }
  }
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
