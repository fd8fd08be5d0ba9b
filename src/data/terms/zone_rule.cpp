#include "src/data/terms/zone_rule.h"

#include <chrono>

namespace satrap::data {
namespace {

constexpr std::int64_t kSecondsPerHour = 3600, kSecondsPerDayOfRule = 86'400;

/// Takes the parts of a rule from its front.
class RuleCursor {
 public:
  explicit RuleCursor(std::string_view text) : rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }
  bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }

  bool take(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// Letters, or anything in angle brackets.
  bool take_name() {
    const bool is_quoted = take('<');
    std::size_t end = 0;
    while (end < rest_.size() && (is_quoted ? rest_[end] != '>' : is_letter(rest_[end]))) ++end;
    rest_.remove_prefix(end);
    return end > 0 && (!is_quoted || take('>'));
  }

  bool take_number(std::int64_t most, std::int64_t& value) {
    std::size_t end = 0;
    for (value = 0; end < rest_.size() && '0' <= rest_[end] && rest_[end] <= '9'; ++end) {
      value = 10 * value + (rest_[end] - '0');
      if (value > most) return false;
    }
    rest_.remove_prefix(end);
    return end > 0;
  }

  /// Hours, maybe with minutes and seconds, and a sign.
  bool take_time(std::int64_t& seconds) {
    constexpr std::int64_t kMostHours = 167;
    const bool is_negative = take('-');
    if (!is_negative) take('+');
    std::int64_t hours = 0, minutes = 0, rest = 0;
    if (!take_number(kMostHours, hours)) return false;
    if (take(':') && !take_number(59, minutes)) return false;
    if (take(':') && !take_number(59, rest)) return false;
    seconds = hours * kSecondsPerHour + minutes * 60 + rest;
    if (is_negative) seconds = -seconds;
    return true;
  }

  bool take_change(ZoneRule::Change& change) {
    using Kind = ZoneRule::Change::Kind;
    if (!take(',')) return false;
    if (take('M')) {
      change.kind = Kind::kWeekday;
      const bool is_there = take_number(12, change.month) && take('.') &&
                            take_number(5, change.week) && take('.') && take_number(6, change.day);
      if (!is_there || change.month == 0 || change.week == 0) return false;
    } else {
      change.kind = take('J') ? Kind::kDayWithoutLeapDay : Kind::kDay;
      if (!take_number(365, change.day)) return false;
      if (change.kind == Kind::kDayWithoutLeapDay && change.day == 0) return false;
    }
    return !take('/') || take_time(change.time);
  }

 private:
  static bool is_letter(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); }

  std::string_view rest_;
};

}  // namespace

std::int64_t ZoneRule::Change::in_year(int year) const {
  using namespace std::chrono;
  const sys_days new_year(std::chrono::year(year) / January / 1);
  sys_days date = new_year + days(day);
  if (kind == Kind::kDayWithoutLeapDay) {
    const bool is_past_leap_day = std::chrono::year(year).is_leap() && day >= 60;
    date = new_year + days(day - 1 + (is_past_leap_day ? 1 : 0));
  } else if (kind == Kind::kWeekday) {
    const auto of_month =
        std::chrono::year(year) / std::chrono::month(static_cast<unsigned>(month));
    const std::chrono::weekday of_week(static_cast<unsigned>(day));
    date = week == 5 ? sys_days(of_month / of_week[last])
                     : sys_days(of_month / of_week[static_cast<unsigned>(week)]);
  }
  return date.time_since_epoch().count() * kSecondsPerDayOfRule + time;
}

std::optional<ZoneRule> ZoneRule::parse(std::string_view text) {
  ZoneRule rule;
  RuleCursor rest(text);
  std::int64_t behind_utc = 0;
  if (!rest.take_name() || !rest.take_time(behind_utc)) return std::nullopt;
  rule.offset = -behind_utc;
  if (rest.is_at_end()) return rule;
  rule.has_summer = true;
  if (!rest.take_name()) return std::nullopt;
  behind_utc -= kSecondsPerHour;
  if (!rest.next_is(',') && !rest.take_time(behind_utc)) return std::nullopt;
  rule.summer_offset = -behind_utc;
  if (!rest.take_change(rule.to_summer) || !rest.take_change(rule.from_summer)) return std::nullopt;
  if (!rest.is_at_end()) return std::nullopt;
  return rule;
}

}  // namespace satrap::data
