#include "satrap/core/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "satrap/core/error.h"

namespace satrap {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kByteUnits[] = {{"b", 1},        {"kb", 1e3},     {"mb", 1e6},
                               {"gb", 1e9},     {"tb", 1e12},    {"kib", 0x1p10},
                               {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40}};
constexpr Unit kTimeUnits[] = {{"ms", 1e-3}, {"s", 1},    {"sec", 1},  {"m", 60},
                               {"min", 60},  {"h", 3600}, {"d", 86400}};

bool is_space(char c) { return c == ' '; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

void skip_spaces(std::string_view& text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
}

// Removes a number >= 0 without sign or exponent from the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || !(std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.')) {
    return std::nullopt;
  }
  double value = 0;
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (result.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return value;
}

// Removes a unit, in any case, from the front of `text`.
std::optional<Unit> take_unit(std::string_view& text, std::span<const Unit> units) {
  skip_spaces(text);
  std::string name;
  while (!text.empty() && is_letter(text.front())) {
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
    text.remove_prefix(1);
  }
  for (const Unit& unit : units) {
    if (unit.name == name) return unit;
  }
  return std::nullopt;
}

[[noreturn]] void fail(const char* expected, std::string_view text) {
  throw Error(ErrorCode::kInvalidConfig, concat("expected ", expected, ", got \"", text, "\""));
}

// Three significant digits of a number in [0, 1000).
std::string three_digits(double x) {
  return fmt::format("{:.{}f}", x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
}

// `value` in the largest of `units` (each `base` times the one before) that leaves it at 1 or more.
std::string in_units(double value, double base, std::span<const char* const> units) {
  std::size_t unit = 0;
  // Switches half a unit of the third digit early: 999.6k would be shown as 1000k.
  while (std::abs(value) >= (unit == 0 ? base : base - 0.5) && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f}{}", value, units[0]);
  return concat(value < 0 ? "-" : "", three_digits(std::abs(value)), units[unit]);
}

/// Bytes of the character of UTF-8 (RFC 3629) that `text` begins with; 0: none, or one of control.
std::size_t shown_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7F ? 0 : 1;
  const std::size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (size == 0 || first > 0xF4) return 0;
  // The second byte excludes C1, longer forms than needed, surrogates and what is beyond U+10FFFF.
  const unsigned least = first == 0xC2 || first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return size;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = shown_bytes(text);
    if (size == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else {
      shown += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return shown;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const bool is_ascii = static_cast<unsigned char>(text[0]) < 0x80;
    const bool is_c1 = text.size() > 1 && text[0] == '\xC2' && (text[1] & '\xE0') == '\x80';
    const std::size_t size = is_ascii ? 1 : is_c1 ? 2 : shown_bytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::int64_t parse_bytes(std::string_view text) {
  constexpr const char* kExpected = "a size such as 512MiB or 8GiB";
  std::string_view rest = text;
  if (const auto plain = parse_number<std::int64_t>(text)) {
    if (*plain < 0) fail(kExpected, text);
    return *plain;
  }
  const std::optional<double> number = take_number(rest);
  if (!number) fail(kExpected, text);
  const std::optional<Unit> unit = take_unit(rest, kByteUnits);
  if (!unit || !rest.empty()) fail(kExpected, text);
  const double bytes = *number * unit->factor;
  if (!(bytes < 0x1p63)) fail(kExpected, text);
  return std::llround(bytes);
}

std::optional<double> parse_share(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  constexpr double kAll = 100.0;
  std::string_view rest = text;
  const std::optional<double> percent = take_number(rest);
  if (!percent || rest != "%" || *percent > kAll) fail("a share such as 10% of at most 100%", text);
  return *percent / kAll;
}

std::int64_t parse_bytes_or_share(std::string_view text, std::int64_t whole) {
  const std::optional<double> share = parse_share(text);
  return share ? static_cast<std::int64_t>(*share * static_cast<double>(whole)) : parse_bytes(text);
}

double parse_duration(std::string_view text) {
  constexpr const char* kExpected = "a duration such as 30s, 10min or 1h30min";
  if (text == "0") return 0;
  double seconds = 0;
  std::string_view rest = text;
  do {
    const std::optional<double> number = take_number(rest);
    if (!number) fail(kExpected, text);
    const std::optional<Unit> unit = take_unit(rest, kTimeUnits);
    if (!unit) fail(kExpected, text);
    seconds += *number * unit->factor;
    skip_spaces(rest);
  } while (!rest.empty());
  return seconds;
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return in_units(static_cast<double>(bytes), 1024, kUnits);
}

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::ptrdiff_t first_digit = number < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > first_digit; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

std::string format_count(double count) {
  static constexpr const char* kUnits[] = {"", "k", "M", "B", "T"};
  return in_units(count, 1000, kUnits);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.9995) return fmt::format("{:.0f}ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f}s", seconds);
  const std::int64_t s = std::llround(seconds);
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  if (s < kHour) return fmt::format("{}min{:02}s", s / kMinute, s % kMinute);
  if (s < kDay) return fmt::format("{}h{:02}min", s / kHour, s % kHour / kMinute);
  return fmt::format("{}d{:02}h", s / kDay, s % kDay / kHour);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace satrap
