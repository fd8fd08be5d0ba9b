#include "src/data/look/column_stats.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/data/rows/row_filler.h"

namespace satrap::data {
namespace {

constexpr std::size_t kMaxExactIds = 65'536;
constexpr std::size_t kShownIds = 3;

}  // namespace

/// Shows a string as its text, if that is known, and its hash.
std::string show_id(std::uint64_t id, const FeatureConfig& feature, const IdTexts& texts) {
  if (id == kMissingId && feature.missing == MissingId::kOwnId) return "(missing)";
  if (feature.type == IdType::kString) {
    const std::string text = texts.find(id);
    if (!text.empty()) return fmt::format("{} ({:016x})", text, id);
  }
  if (feature.type == IdType::kInt) {
    const std::string text = texts.find(id);
    return text.empty() ? fmt::format("{}", static_cast<std::int64_t>(id)) : text;
  }
  if (feature.type == IdType::kHex && id <= 0xFFFFFFFFU) return fmt::format("{:08x}", id);
  return fmt::format("{:016x}", id);
}

std::string show_time(double ms) {
  if (std::isnan(ms)) return "-";
  using namespace std::chrono;  // fmt would count far times in nanoseconds, which overflow
  const sys_time<milliseconds> time(milliseconds(static_cast<std::int64_t>(ms)));
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  const std::int64_t fraction = clock.subseconds().count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     fraction > 0 ? fmt::format(".{:03}", fraction) : "");
}

void NumberStats::add(double x) {
  if (std::isnan(x)) return;
  ++count;
  min = std::min(min, x);
  max = std::max(max, x);
  const double difference = x - mean;
  mean += difference / static_cast<double>(count);
  sum_squares += difference * (x - mean);
}

std::string NumberStats::missing(std::string_view name,
                                 std::size_t width,
                                 std::int64_t num_rows) const {
  return fmt::format("{:<{}} {:>8.2f}%", name, width,
                     100.0 * (1.0 - static_cast<double>(count) / static_cast<double>(num_rows)));
}

std::string NumberStats::line(std::string_view name,
                              std::size_t width,
                              std::int64_t num_rows) const {
  std::string text = missing(name, width, num_rows);
  if (count > 0) {
    text += fmt::format(" {:>11.6g} {:>11.6g} {:>11.6g} {:>11.6g}", min, mean,
                        std::sqrt(sum_squares / static_cast<double>(count)), max);
  }
  return text + '\n';
}

/// The days alone.
std::string NumberStats::line_of_times(std::string_view name,
                                       std::size_t width,
                                       std::int64_t num_rows) const {
  std::string text = missing(name, width, num_rows);
  if (count > 0) {
    text += fmt::format(" {:>11.10} {:>11.10} {:>11} {:>11.10}", show_time(min), show_time(mean),
                        "", show_time(max));
  }
  return text + '\n';
}

void IdStats::add(const RowBlock::Bags& bags, std::int64_t row) {
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

std::string IdStats::line(std::string_view name,
                          std::size_t width,
                          std::int64_t num_rows,
                          const FeatureConfig& feature,
                          const IdTexts& texts) const {
  const auto rows = static_cast<double>(num_rows);
  const std::string distinct =
      exact_ ? fmt::format("{}", counts_.size()) : fmt::format("~{:.0f}", estimate_.count());
  return fmt::format("{:<{}} {:>8.2f}% {:>9.2f} {:>11}  {}\n", name, width,
                     100.0 * static_cast<double>(num_empty_) / rows,
                     static_cast<double>(num_ids_) / rows, distinct, most_frequent(feature, texts));
}

std::string IdStats::most_frequent(const FeatureConfig& feature, const IdTexts& texts) const {
  std::vector<std::pair<std::int64_t, std::uint64_t>> sorted;
  for (const auto& [id, count] : counts_) sorted.emplace_back(-count, id);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(kShownIds, sorted.size()));
  std::partial_sort(sorted.begin(), sorted.begin() + shown, sorted.end());
  std::string text;
  for (std::ptrdiff_t i = 0; i < shown; ++i) {
    const auto& [negative_count, id] = sorted[static_cast<std::size_t>(i)];
    const double share = -static_cast<double>(negative_count) / static_cast<double>(num_ids_);
    text +=
        fmt::format("{}{} {:.1f}%", i > 0 ? ", " : "", show_id(id, feature, texts), 100.0 * share);
  }
  return text;
}

}  // namespace satrap::data
