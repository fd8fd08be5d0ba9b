#include "src/app/column_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/app/label_leaks.h"

namespace satrap::app {
namespace {

using data::ColumnProfile;

/// How many columns have a name.
using NameCounts = std::unordered_map<std::string_view, std::int64_t>;

constexpr std::int64_t kFewValues = 32;  // for which ranges would be the values themselves
constexpr std::int64_t kRanges = 32;     // of the values beside the most frequent one
constexpr std::int64_t kMostRanges = 1024;
constexpr std::size_t kMostFeatures = 1000;
constexpr std::int64_t kEnoughRows = 100;  // to call values different in every row
constexpr std::size_t kLongName = 1000;    // bytes
constexpr double kTells = 0.99;            // an AUC of numbers that tell the label
constexpr double kNearlyTells = 0.95;
constexpr double kRarelyBack = 3.0;        // rows per value, below which integers are no ids
constexpr double kHardlyBack = 0.9;        // values per row, from which texts are prose
constexpr double kSkewed = 10.0;           // largest value over the mean
constexpr std::int64_t kMoreElements = 4;  // room for longer bags than those of the sample
constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

/// "userId", "item_id", "id", "uid", "ip"
bool is_named_as_id(const std::string& name) {
  const std::string lower = lower_case(name);
  constexpr std::array<std::string_view, 5> kWords{"user", "item", "ip", "uid", "zip"};
  return lower == "id" || lower.ends_with("_id") || name.ends_with("Id") || name.ends_with("ID") ||
         std::ranges::find(kWords, lower) != kWords.end();
}

/// "C1..C26", which data.schema takes for 26 columns.
bool is_range(const std::string& name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t dots = name.find("..");
  return dots != std::string::npos && dots > 0 && is_digit(name[dots - 1]) && is_digit(name.back());
}

bool is_named_as_time(const std::string& name) {
  const std::string lower = lower_case(name);
  constexpr std::array<std::string_view, 8> kWords{"time", "date",      "hour",     "day",
                                                   "ts",   "timestamp", "datetime", "at"};
  constexpr std::array<std::string_view, 3> kEnds{"Time", "Date", "At"};  // "createdAt"
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) {
                               return lower == word || lower.ends_with(fmt::format("_{}", word));
                             }) ||
         std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

/// In this part of a second since 1970, of 1990 to 2039.
bool is_epoch_time(const ColumnProfile& profile, double unit) {
  return profile.is_numeric() && profile.num_distinct > kFewValues && profile.min >= 6.3e8 * unit &&
         profile.max <= 2.2e9 * unit;
}

bool is_time(const ColumnProfile& profile, const std::string& name) {
  if (profile.kind == ColumnProfile::Kind::kTime) return true;
  // Milliseconds and microseconds have more digits than most ids.
  if (is_epoch_time(profile, 1e3) || is_epoch_time(profile, 1e6)) return !is_named_as_id(name);
  if (is_epoch_time(profile, 1)) return is_named_as_time(name) || profile.is_ascending;
  return profile.is_numeric() && profile.is_ascending && is_named_as_time(name) &&
         profile.num_distinct >= 10;
}

/// Texts that hardly ever come back, such as titles and names.
bool is_prose(const ColumnProfile& profile) {
  return profile.kind == ColumnProfile::Kind::kText && profile.separator.empty() &&
         profile.num_values >= kEnoughRows &&
         static_cast<double>(profile.num_distinct) >=
             kHardlyBack * static_cast<double>(profile.num_values);
}

/// Ranges of equal share waste nearly all on a value that most rows have.
std::int64_t num_ranges(const ColumnProfile& profile) {
  const double others = std::max(1.0 - profile.frequent_share(0), 1e-3);
  return std::min(static_cast<std::int64_t>(std::lround(kRanges / others)), kMostRanges);
}

/// The begins of ranges of equal share, each once: "[1, 2, 5]".
std::string boundaries(const ColumnProfile& profile) {
  const std::int64_t num = num_ranges(profile);
  std::string text;
  double last = profile.min;
  for (std::int64_t k = 1; k < num; ++k) {
    const double begin = profile.numbers[static_cast<std::size_t>(k * profile.num_values / num)];
    if (begin > last) text += fmt::format("{}{}", text.empty() ? "" : ", ", begin);
    last = begin;
  }
  return fmt::format("[{}]", text);
}

/// Writes the entries of one column. `can_fit`: the data can be read before training, to fit means
/// and quantiles to them.
class Entries {
 public:
  /// `names` are those of all columns.
  Entries(const NameCounts& names, const ColumnProfile& profile, bool can_fit, ColumnChoice& choice)
      : names_(names), profile_(profile), can_fit_(can_fit), choice_(choice) {}

  void number() {
    const bool is_skewed = profile_.min >= 0.0 && profile_.max > kSkewed * profile_.mean;
    choice_.numeric.push_back(
        fmt::format("{{{}, transform: {}{}}}", name_and_column(),
                    !can_fit_   ? "log1p"
                    : is_skewed ? "log1p_zscore"
                                : "zscore",
                    profile_.num_missing > 0 ? ", missing_indicator: true" : ""));
  }

  void ranges() {
    choice_.features.push_back(
        fmt::format("{{name: {}, column: {}, buckets: {{{}}}}}",
                    yaml_scalar(own_name(simple_name() + "_range")), yaml_scalar(choice_.name),
                    can_fit_ ? fmt::format("quantiles: {}", num_ranges(profile_))
                             : fmt::format("boundaries: {}", boundaries(profile_))));
  }

  void ids() {
    std::string text = fmt::format("{{{}", name_and_column());
    if (profile_.kind == ColumnProfile::Kind::kInteger) text += ", type: int";
    if (profile_.kind == ColumnProfile::Kind::kHex) text += ", type: hex";
    if (!profile_.separator.empty()) {
      text += fmt::format(", separator: {}, max_length: {}", yaml_scalar(profile_.separator),
                          kMoreElements * profile_.most_elements);
    }
    if (profile_.num_missing > 0) text += ", missing: own_id";
    choice_.features.push_back(text + "}");
  }

 private:
  /// `default` is no name of a feature, and one with two dots stands for several columns.
  std::string simple_name() const {
    if (choice_.name == "default") return own_name("default_id");
    std::string name = choice_.name;
    if (name.find("..") == std::string::npos) return name;
    std::ranges::replace(name, '.', '_');
    return own_name(name);
  }
  std::string name_and_column() const {
    const std::string name = simple_name();
    return concat("name: ", yaml_scalar(name),
                  name == choice_.name ? "" : concat(", column: ", yaml_scalar(choice_.name)));
  }

  /// A name that no column has.
  std::string own_name(std::string name) const {
    while (names_.contains(name)) name += '_';
    return name;
  }

  const NameCounts& names_;
  const ColumnProfile& profile_;
  const bool can_fit_;
  ColumnChoice& choice_;
};

std::string describe(const ColumnProfile& profile, std::int64_t num_rows) {
  std::string text;
  if (profile.is_numeric()) text = fmt::format("{:.6g} to {:.6g}, ", profile.min, profile.max);
  text += fmt::format("{} different {}", profile.num_distinct,
                      profile.kind == ColumnProfile::Kind::kInteger  ? "integers"
                      : profile.kind == ColumnProfile::Kind::kNumber ? "numbers"
                      : profile.kind == ColumnProfile::Kind::kHex    ? "hex ids"
                                                                     : "texts");
  if (profile.have_points) text += ", some with a point (17.0), which are the same integers";
  if (profile.are_long_digits) text += " of digits, more than 64 bits have";
  if (!profile.separator.empty()) {
    text += fmt::format(", up to {} ids in a field{}", profile.most_elements,
                        profile.is_in_brackets ? " in brackets" : "");
  }
  if (profile.are_marked_numbers) {
    text += ", numbers with a decimal comma, thousands or a unit: read as texts";
  }
  if (profile.num_missing > 0) {
    const double percent = 100.0 / static_cast<double>(num_rows);
    text += fmt::format(", {:.3g} % missing", percent * static_cast<double>(profile.num_missing));
    std::string words;
    for (const auto& [word, count] : profile.missing) {
      words += fmt::format("{}{} {:.3g} %", words.empty() ? "" : ", ", word,
                           percent * static_cast<double>(count));
    }
    if (!words.empty()) text += concat(" (", words, ")");
  }
  return text;
}

/// Why the column is left out; "": it is not.
std::string reason_against(const data::Sample& sample,
                           const NameCounts& names,
                           std::size_t column,
                           const ColumnProfile& profile,
                           const LabelChoice& label,
                           double auc) {
  const std::string& name = sample.names[column];
  const bool has_missing = profile.num_missing > 0;
  if (name.empty()) return "a column without a name";
  if (names.at(name) > 1) return "two columns have this name";
  if (name.size() > kLongName) return fmt::format("its name has {} bytes", name.size());
  if (is_range(name)) return "such a name stands for several columns";
  if (profile.num_values == 0) return "it has no values";
  if (profile.num_distinct == 1 && !has_missing) {
    return fmt::format("{} in every row", shown_value(profile.frequent.front().first));
  }
  if (std::ranges::binary_search(label.outcomes, column)) {
    return "looks like another label, which is not known when this one is predicted";
  }
  if (tells_label(sample.columns[column], profile, label.positive)) {
    return "tells the label: not known when that is predicted";
  }
  if (auc > kTells) {
    return fmt::format(
        "alone it tells the label, with auc {:.4f}: probably not known when that is "
        "predicted",
        auc);
  }
  if (is_time(profile, name)) {
    return profile.are_read_as_times
               ? "a time, which does not come back; its hour or weekday may help (`part`, "
                 "docs/times.md)"
               : "a time, which does not come back; not in a form that inputs can be made of "
                 "(docs/times.md)";
  }
  const bool is_unique = profile.num_distinct == profile.num_values &&
                         profile.num_values >= kEnoughRows &&
                         profile.kind != ColumnProfile::Kind::kNumber;
  const bool is_key = profile.kind != ColumnProfile::Kind::kInteger || profile.is_ascending ||
                      is_named_as_id(name) || profile.max > kExactIntegers;
  if (is_unique && is_key) return "another value in every row: nothing to learn from";
  if (sample.is_whole && !is_named_as_id(name) && is_prose(profile)) {
    if (profile.are_marked_numbers) {
      return fmt::format(
          "numbers with a decimal comma, thousands or a unit in {:.3g} % of the rows: not read; "
          "write them as 1234.5",
          100 * static_cast<double>(profile.num_values) / static_cast<double>(sample.num_rows));
    }
    return fmt::format("{} different texts in {} rows: nearly all would be learned by heart",
                       profile.num_distinct, profile.num_values);
  }
  return "";
}

ColumnChoice choose(const data::Sample& sample,
                    const NameCounts& names,
                    std::size_t column,
                    const ColumnProfile& profile,
                    const LabelChoice& label) {
  ColumnChoice choice;
  choice.name = sample.names[column];
  const double auc =
      profile.is_numeric() ? auc_alone(sample.columns[column], profile, label.positive) : 0.5;
  choice.is_ascending = profile.is_ascending;
  choice.reason = reason_against(sample, names, column, profile, label, auc);
  choice.is_time = is_time(profile, choice.name) && profile.is_ascending;
  if (!choice.reason.empty()) return choice;
  choice.reason = describe(profile, sample.num_rows);
  choice.is_doubtful = auc > kNearlyTells || profile.are_marked_numbers;
  if (auc > kNearlyTells) {
    choice.reason += fmt::format(", alone it tells much of the label: auc {:.3f}", auc);
  }
  Entries entries(names, profile, sample.is_rereadable, choice);
  if (profile.kind == ColumnProfile::Kind::kNumber) {
    entries.number();
    entries.ranges();
  } else if (profile.kind != ColumnProfile::Kind::kInteger || profile.num_distinct <= kFewValues ||
             profile.max > kExactIntegers) {
    entries.ids();
  } else {
    const bool is_id = is_named_as_id(choice.name);
    const bool comes_back = static_cast<double>(profile.num_values) >=
                            kRarelyBack * static_cast<double>(profile.num_distinct);
    if (!is_id) entries.number();
    if (is_id || comes_back) entries.ids();
    entries.ranges();
  }
  return choice;
}

/// Every feature has a table, and there is a limit to these: numbers can do without ranges.
void keep_tables_few(std::vector<ColumnChoice>& choices) {
  std::size_t num_features = 0;
  for (const ColumnChoice& choice : choices) num_features += choice.features.size();
  for (ColumnChoice& choice : choices) {
    if (num_features <= kMostFeatures) return;
    if (choice.numeric.empty() || choice.features.empty()) continue;
    choice.features.pop_back();  // the ranges, which are last
    --num_features;
  }
}

}  // namespace

std::vector<ColumnChoice> choose_columns(const data::Sample& sample,
                                         const std::vector<ColumnProfile>& profiles,
                                         const LabelChoice& label) {
  NameCounts names;
  for (const std::string& name : sample.names) ++names[name];
  std::vector<ColumnChoice> choices;
  for (std::size_t c = 0; c < profiles.size(); ++c) {
    if (c != label.column) choices.push_back(choose(sample, names, c, profiles[c], label));
  }
  keep_tables_few(choices);
  return choices;
}

void leave_out_ascending(std::vector<ColumnChoice>& choices) {
  for (ColumnChoice& choice : choices) {
    if (!choice.is_ascending || !choice.is_used()) continue;
    choice.numeric.clear();
    choice.features.clear();
    choice.reason = "ascends with the time: later rows have values that training has not seen";
  }
}

std::pair<std::string, std::string> find_history(const data::Sample& sample,
                                                 const std::vector<ColumnProfile>& profiles,
                                                 const std::vector<ColumnChoice>& choices) {
  constexpr double kOftenInLists = 0.5;
  constexpr int kMostLists = 16;  // that are compared with all other columns
  std::set<std::string_view> used;
  for (const ColumnChoice& choice : choices) {
    if (!choice.features.empty()) used.insert(choice.name);
  }
  const auto is_of_ids = [&](std::size_t c, bool is_list) {
    return used.contains(sample.names[c]) &&
           is_list == (!profiles[c].separator.empty() || profiles[c].is_list);
  };
  int num_lists = 0;
  for (std::size_t list = 0; list < profiles.size(); ++list) {
    if (!is_of_ids(list, true) || profiles[list].most_elements < 2) continue;
    if (++num_lists > kMostLists) break;
    std::set<std::string> elements;
    for (const std::string& text : sample.columns[list]) {
      for (std::string& element : data::elements_of(text, profiles[list])) {
        elements.insert(std::move(element));
      }
    }
    for (std::size_t item = 0; item < profiles.size(); ++item) {
      if (!is_of_ids(item, false) || profiles[item].num_distinct <= kFewValues) continue;
      const auto found = std::ranges::count_if(
          sample.columns[item], [&](const std::string& id) { return elements.contains(id); });
      if (static_cast<double>(found) >= kOftenInLists * static_cast<double>(sample.num_rows)) {
        return {sample.names[list], sample.names[item]};
      }
    }
  }
  return {};
}

}  // namespace satrap::app
