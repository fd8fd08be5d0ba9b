#include "src/app/label_choice.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/data/label_config.h"

namespace satrap::app {
namespace {

using data::ColumnProfile;
using Profiles = std::vector<ColumnProfile>;

/// Names of labels, in the order of preference. Those from kFirstTrait on may as well be traits of
/// a user or an item.
constexpr std::array<std::string_view, 34> kLabelNames{
    "label",     "click",        "clicked",      "is_click",   "is_clicked",    "is_attributed",
    "is_trade",  "target",       "conversion",   "converted",  "is_conversion", "purchase",
    "purchased", "is_purchase",  "buy",          "is_buy",     "bought",        "install",
    "installed", "is_installed", "like",         "is_like",    "churn",         "rating",
    "y",         "survived",     "outcome",      "response",   "class",         "income",
    "churned",   "stars",        "review_stars", "user_rating"};
constexpr std::size_t kFirstTrait = 24;
constexpr std::array<std::string_view, 7> kYes{"yes", "y", "true", "t", "positive", "click", "1"};

/// Place in kLabelNames; its size if the name is none.
std::size_t rank_of(const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(kLabelNames, lower_case(name)) -
                                  kLabelNames.begin());
}

bool has_two_values(const ColumnProfile& profile) {
  return profile.num_distinct == 2 && profile.separator.empty() && !profile.is_list;
}

/// Names may hold anything, and a line end in a message would begin another one.
[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidConfig, printable(message));
}

std::size_t column_named(const data::Sample& sample, const std::string& name) {
  const auto found = std::ranges::find(sample.names, name);
  if (found != sample.names.end()) return static_cast<std::size_t>(found - sample.names.begin());
  if (!sample.header) {
    if (const auto number = parse_number<std::size_t>(name);
        number && *number < sample.names.size()) {
      return *number;
    }
    fail(concat("--label: there is no column '", name, "'; '", sample.files.front(),
                "' has no header, and its columns are c0 to ", sample.names.back()));
  }
  const std::string guess = nearest(name, sample.names);
  fail(concat("--label: '", sample.files.front(), "' has no column '", name, "'",
              guess.empty() ? concat("; the first is '", sample.names.front(), "'")
                            : concat("; did you mean '", guess, "'?")));
}

/// The column that looks most like a label, and why. `is_guess` is set if only its place says so.
std::pair<std::size_t, std::string> guessed_column(const data::Sample& sample,
                                                   const Profiles& profiles,
                                                   bool& is_guess) {
  std::size_t best = profiles.size();
  for (std::size_t c = 0; c < profiles.size(); ++c) {
    if (rank_of(sample.names[c]) == kLabelNames.size() || profiles[c].num_distinct < 2) continue;
    if (!has_two_values(profiles[c]) && !profiles[c].is_numeric()) continue;
    const auto worth = [&](std::size_t i) {
      return std::pair(has_two_values(profiles[i]) ? 0 : 1, rank_of(sample.names[i]));
    };
    if (best == profiles.size() || worth(c) < worth(best)) best = c;
  }
  if (best < profiles.size()) return {best, "its name is that of a label"};
  for (const std::size_t c : {profiles.size() - 1, std::size_t{0}}) {
    if (!has_two_values(profiles[c])) continue;
    is_guess = true;
    return {c, concat("a guess: the ", c == 0 ? "first" : "last", " column, with two values")};
  }
  const auto names_of = [&](const auto& belongs) {
    constexpr std::size_t kMostShown = 20;
    std::string names;
    std::size_t found = 0;
    for (std::size_t c = 0; c < profiles.size(); ++c) {
      if (!belongs(profiles[c]) || ++found > kMostShown) continue;
      names += concat(names.empty() ? "" : ", ", sample.names[c]);
    }
    return found > kMostShown ? concat(names, " and ", found - kMostShown, " more") : names;
  };
  const std::string others = names_of(has_two_values);
  fail(concat("'", sample.files.front(),
              "': no column looks like a label; name the one to predict, --label COLUMN (",
              others.empty() ? concat("there are ", names_of([](const auto&) { return true; }))
                             : concat("with two values: ", others),
              ")"));
}

/// "0 (82.5 %), 1 (17.5 %)"
std::string shares(const ColumnProfile& profile) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(profile.frequent.size(), 3); ++i) {
    text += fmt::format("{}{} ({:.3g} %)", i == 0 ? "" : ", ",
                        shown_value(profile.frequent[i].first), 100 * profile.frequent_share(i));
  }
  return text + (profile.frequent.size() > 3 ? ", ..." : "");
}

bool is_truth_value(const std::string& text) {
  const std::string lower = lower_case(text);
  return lower == "true" || lower == "false";
}

/// Sets what the column's values mean.
void divide(const data::Sample& sample, const ColumnProfile& profile, LabelChoice& choice) {
  const std::string& name = sample.names[choice.column];
  const std::string column = yaml_scalar(name);
  const std::vector<std::string>& texts = sample.columns[choice.column];
  const auto mark = [&](const auto& means_one) {
    for (const std::string& text : texts) {
      choice.positive.push_back(!profile.is_missing(text) && means_one(text));
    }
  };
  choice.reason += "; " + shares(profile);
  if (profile.num_distinct < 2) {
    fail(fmt::format("label '{}': the first {} rows have only one value, '{}'; a label needs two",
                     name, sample.num_rows,
                     profile.frequent.empty() ? "" : shown_value(profile.frequent.front().first)));
  }
  if (profile.is_numeric()) {
    const bool is_plain = profile.num_distinct == 2 && profile.min == 0.0 && profile.max == 1.0;
    const double threshold = profile.num_distinct == 2 ? profile.max : profile.upper_half;
    mark([&](const std::string& text) {
      return std::strtod(text.c_str(), nullptr) >= (is_plain ? 1.0 : threshold);
    });
    choice.yaml =
        is_plain ? column : fmt::format("{{column: {}, threshold: {}}}", column, threshold);
    if (!is_plain) {
      choice.reason +=
          fmt::format("; numbers of at least {} mean 1, which are {:.3g} %", threshold,
                      100 * static_cast<double>(std::ranges::count(choice.positive, true)) /
                          static_cast<double>(sample.num_rows));
    }
    if (profile.num_distinct > 2) {
      choice.reason +=
          fmt::format("; to predict the number itself: {{column: {}, type: number}}", column);
    }
    return;
  }
  if (profile.num_distinct > 2) {
    fail(
        fmt::format("label '{}' has {} different texts, such as '{}' and '{}', and a label is 0 or "
                    "1; make a column of these, or write the configuration by hand, with the texts "
                    "that mean 1: label: {{column: {}, positive: [...]}}{}",
                    name, profile.num_distinct, shown_value(profile.frequent[0].first),
                    shown_value(profile.frequent[1].first), column,
                    profile.num_distinct > data::LabelConfig::kMaxClasses
                        ? ""
                        : fmt::format(", or with all of them, to predict which it is: label: "
                                      "{{column: {}, classes: {}, values: [...]}}",
                                      column, profile.num_distinct)));
  }
  std::string negative = profile.frequent[0].first;
  std::string positive = profile.frequent[1].first;  // the rarer one
  const auto is_yes = [](const std::string& text) {
    return std::ranges::find(kYes, lower_case(text)) != kYes.end();
  };
  constexpr std::size_t kLongText = 1000;
  if (std::max(negative.size(), positive.size()) > kLongText) {
    fail(fmt::format(
        "label '{}' has the text '{}', of {} bytes or more; a label is 0 or 1, or has "
        "texts of up to {}",
        name,
        shown_value(std::max(negative, positive,
                             [](const auto& a, const auto& b) { return a.size() < b.size(); })),
        std::max(negative.size(), positive.size()), kLongText));
  }
  if (is_yes(negative)) std::swap(negative, positive);
  mark([&](const std::string& text) { return text == positive; });
  if (is_truth_value(negative) && is_truth_value(positive)) {
    choice.yaml = column;
    return;
  }
  choice.yaml = fmt::format("{{column: {}, positive: [{}], negative: [{}]}}", column,
                            yaml_scalar(positive), yaml_scalar(negative));
  if (!is_yes(positive)) choice.reason += "; the rarer value means 1";
}

}  // namespace

std::string shown_value(const std::string& text) {
  std::size_t size = 80;
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
  return text.substr(0, size) + "...";  // whole characters of UTF-8
}

LabelChoice choose_label(const data::Sample& sample,
                         const Profiles& profiles,
                         const std::string& label) {
  LabelChoice choice;
  if (label.empty()) {
    std::tie(choice.column, choice.reason) = guessed_column(sample, profiles, choice.is_guess);
  } else {
    choice.column = column_named(sample, label);
    choice.reason = "as you said";
  }
  const ColumnProfile& profile = profiles[choice.column];
  if (profile.is_list) {
    fail(concat("--label: column '", sample.names[choice.column],
                "' holds lists, which are read as ids alone; name a column of single values"));
  }
  choice.missing_share =
      static_cast<double>(profile.num_missing) / static_cast<double>(sample.num_rows);
  divide(sample, profile, choice);
  if (profile.num_missing > 0) {
    choice.reason +=
        fmt::format("; {:.3g} % have none and are skipped", 100 * choice.missing_share);
  }
  for (std::size_t c = 0; c < profiles.size(); ++c) {
    const bool is_other = c != choice.column && rank_of(sample.names[c]) < kFirstTrait;
    if (is_other && has_two_values(profiles[c])) choice.outcomes.push_back(c);
  }
  return choice;
}

}  // namespace satrap::app
