#include "src/app/label_leaks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>

namespace satrap::app {
namespace {

using data::ColumnProfile;

constexpr std::int64_t kEnoughOfEach = 5;  // rows of each label

}  // namespace

bool tells_label(const std::vector<std::string>& texts,
                 const ColumnProfile& profile,
                 const std::vector<bool>& positive) {
  const bool has_few = profile.num_distinct <= static_cast<std::int64_t>(ColumnProfile::kFrequent);
  std::map<std::string, std::array<std::int64_t, 2>>
      rows_of;  // by text, or by whether there is one
  for (std::size_t r = 0; r < texts.size(); ++r) {
    const bool is_missing = profile.is_missing(texts[r]);
    ++rows_of[is_missing ? "" : has_few ? texts[r] : "value"][positive[r] ? 1 : 0];
  }
  std::array<std::int64_t, 2> rows{};
  for (const auto& [text, counts] : rows_of) {
    if (counts[0] > 0 && counts[1] > 0) return false;
    rows[0] += counts[0];
    rows[1] += counts[1];
  }
  return rows_of.size() > 1 && rows[0] >= kEnoughOfEach && rows[1] >= kEnoughOfEach;
}

double auc_alone(const std::vector<std::string>& texts,
                 const ColumnProfile& profile,
                 const std::vector<bool>& positive) {
  std::vector<std::pair<double, bool>> rows;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (profile.is_missing(texts[r])) continue;
    rows.emplace_back(std::strtod(texts[r].c_str(), nullptr), positive[r]);
  }
  std::ranges::sort(rows);
  std::array<std::int64_t, 2> all{};
  std::int64_t zeros_below = 0;
  for (const auto& [number, is_positive] : rows) ++all[is_positive ? 1 : 0];
  if (all[0] < kEnoughOfEach || all[1] < kEnoughOfEach) return 0.5;
  double pairs = 0.0;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::array<std::int64_t, 2> equal{};
    std::size_t end = begin;
    for (; end < rows.size() && rows[end].first == rows[begin].first; ++end) {
      ++equal[rows[end].second ? 1 : 0];
    }
    pairs += static_cast<double>(equal[1]) *
             (static_cast<double>(zeros_below) + 0.5 * static_cast<double>(equal[0]));
    zeros_below += equal[0];
    begin = end;
  }
  const double auc = pairs / (static_cast<double>(all[0]) * static_cast<double>(all[1]));
  return std::max(auc, 1.0 - auc);
}

}  // namespace satrap::app
