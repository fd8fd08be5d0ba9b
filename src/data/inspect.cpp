#include "satrap/data/inspect.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "src/data/distinct_estimate.h"
#include "src/data/row_filler.h"

namespace satrap::data {
namespace {

constexpr std::size_t kMaxExactIds = 65'536;
constexpr std::size_t kShownIds = 3;

std::string show_id(std::uint64_t id, const FeatureConfig& feature) {
  if (id == kMissingId && feature.missing == "own_id") return "(missing)";
  if (feature.type == "int") return fmt::format("{}", static_cast<std::int64_t>(id));
  if (feature.type == "hex" && id <= 0xFFFFFFFFU) return fmt::format("{:08x}", id);
  return fmt::format("{:016x}", id);
}

std::string show_bag(const RowBlock::Bags& bags, std::int64_t row, const FeatureConfig& feature) {
  const auto begin = static_cast<std::size_t>(bags.offsets[static_cast<std::size_t>(row)]);
  const auto end = static_cast<std::size_t>(bags.offsets[static_cast<std::size_t>(row) + 1]);
  if (begin == end) return "-";
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) text += ' ';
    text += show_id(bags.ids[i], feature);
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

  void add(float value) {
    if (std::isnan(value)) return;
    const auto x = static_cast<double>(value);
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
                   const FeatureConfig& feature) const {
    const auto rows = static_cast<double>(num_rows);
    const std::string distinct =
        exact_ ? fmt::format("{}", counts_.size()) : fmt::format("~{:.0f}", estimate_.count());
    return fmt::format("{:<{}} {:>8.2f}% {:>9.2f} {:>11}  {}\n", name, width,
                       100.0 * static_cast<double>(num_empty_) / rows,
                       static_cast<double>(num_ids_) / rows, distinct, most_frequent(feature));
  }

 private:
  std::string most_frequent(const FeatureConfig& feature) const {
    std::vector<std::pair<std::int64_t, std::uint64_t>> sorted;
    for (const auto& [id, count] : counts_) sorted.emplace_back(-count, id);
    const auto shown = static_cast<std::ptrdiff_t>(std::min(kShownIds, sorted.size()));
    std::partial_sort(sorted.begin(), sorted.begin() + shown, sorted.end());
    std::string text;
    for (std::ptrdiff_t i = 0; i < shown; ++i) {
      const auto& [negative_count, id] = sorted[static_cast<std::size_t>(i)];
      const double share = -static_cast<double>(negative_count) / static_cast<double>(num_ids_);
      text += fmt::format("{}{} {:.1f}%", i > 0 ? ", " : "", show_id(id, feature), 100.0 * share);
    }
    return text;
  }

  std::int64_t num_empty_ = 0;
  std::int64_t num_ids_ = 0;
  bool exact_ = true;
  std::unordered_map<std::uint64_t, std::int64_t> counts_;
  DistinctEstimate estimate_;
};

}  // namespace

std::string describe_head(const DataConfig& config,
                          const Schema& schema,
                          Role role,
                          std::int64_t num_rows) {
  if (num_rows <= 0) return "";
  const auto rows = open_rows(config, schema, role, {});
  const std::size_t width = longest(schema);
  std::string text;
  for_each_row(*rows, num_rows, [&](const RowBlock& block, std::int64_t r) {
    const auto row = static_cast<std::size_t>(r);
    text += fmt::format("row {}: {}\n", block.row_number(r), show_labels(schema, block, r));
    for (std::size_t i = 0; i < schema.raw_numeric.size(); ++i) {
      const float value = block.numeric[i][row];
      text += fmt::format("  {:<{}}  {}\n", schema.raw_numeric[i], width,
                          std::isnan(value) ? "-" : fmt::format("{}", value));
    }
    for (std::size_t i = 0; i < schema.id_columns.size(); ++i) {
      const FeatureConfig& feature = schema.id_columns[i].config;
      text +=
          fmt::format("  {:<{}}  {}\n", feature.name, width, show_bag(block.bags[i], r, feature));
    }
  });
  return text;
}

std::string describe_stats(const DataConfig& config,
                           const Schema& schema,
                           Role role,
                           std::int64_t max_rows) {
  const auto rows = open_rows(config, schema, role, {});
  std::vector<NumberStats> numbers(schema.raw_numeric.size());
  std::vector<IdStats> ids(schema.id_columns.size());
  std::vector<std::int64_t> num_positive(schema.labels.size());
  const std::int64_t num_rows =
      for_each_row(*rows, max_rows, [&](const RowBlock& block, std::int64_t r) {
        const auto row = static_cast<std::size_t>(r);
        for (std::size_t l = 0; l < num_positive.size(); ++l) {
          num_positive[l] += block.labels[row * num_positive.size() + l] > 0.0F ? 1 : 0;
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].add(block.numeric[i][row]);
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i].add(block.bags[i], r);
      });
  if (num_rows == 0) throw Error(ErrorCode::kInvalidData, "no row can be used");

  const std::size_t width = longest(schema);
  std::string text =
      fmt::format("{} rows, {}, {} bad rows\n", num_rows,
                  show_shares(schema, num_positive, num_rows), rows->stats().bad_rows);
  if (!numbers.empty()) {
    text += fmt::format("\n{:<{}} {:>9} {:>11} {:>11} {:>11} {:>11}\n", "number", width, "missing",
                        "min", "mean", "stddev", "max");
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const NumberStats& stats = numbers[i];
    const auto count = static_cast<double>(stats.count);
    text += fmt::format("{:<{}} {:>8.2f}%", schema.raw_numeric[i], width,
                        100.0 * (1.0 - count / static_cast<double>(num_rows)));
    if (stats.count > 0) {
      text += fmt::format(" {:>11.6g} {:>11.6g} {:>11.6g} {:>11.6g}", stats.min, stats.mean,
                          std::sqrt(stats.sum_squares / count), stats.max);
    }
    text += '\n';
  }
  if (!ids.empty()) {
    text += fmt::format("\n{:<{}} {:>9} {:>9} {:>11}  {}\n", "feature", width, "empty", "ids/row",
                        "distinct", "most frequent");
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const FeatureConfig& feature = schema.id_columns[i].config;
    text += ids[i].line(feature.name, width, num_rows, feature);
  }
  return text;
}

}  // namespace satrap::data
