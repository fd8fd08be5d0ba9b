#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace satrap::data {

/// Parsers of single fields, and their byte tricks. Little-endian machines only.
static_assert(std::endian::native == std::endian::little);

inline std::uint64_t load8(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

inline constexpr std::uint64_t kEveryByte = 0x0101010101010101ULL;
inline constexpr std::uint64_t kHighBits = 0x8080808080808080ULL;

/// The lowest set bit is the high bit of the first zero byte; 0 if there is none. Bits above the
/// lowest may be wrong.
constexpr std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - kEveryByte) & ~word & kHighBits;
}

/// Whether one of two characters is in the text, without a branch that depends on where.
inline bool has_either(std::string_view text, char a, char b) {
  const std::uint64_t as = kEveryByte * static_cast<unsigned char>(a);
  const std::uint64_t bs = kEveryByte * static_cast<unsigned char>(b);
  const auto find = [&](std::uint64_t word) {
    return zero_bytes(word ^ as) | zero_bytes(word ^ bs);
  };
  std::uint64_t found = 0;
  if (text.size() < 8) {
    for (const char c : text)
      found |= static_cast<std::uint64_t>(c == a) | static_cast<std::uint64_t>(c == b);
    return found != 0;
  }
  const char* const last = text.data() + text.size() - 8;
  for (const char* p = text.data(); p < last; p += 8) found |= find(load8(p));
  return (found | find(load8(last))) != 0;
}

/// The first `delimiter` or '\n' from p on; one must be there. Reads up to 7 bytes beyond it.
inline const char* find_field_end(const char* p, char delimiter) {
  const std::uint64_t delimiters = kEveryByte * static_cast<unsigned char>(delimiter);
  constexpr std::uint64_t kNewlines = kEveryByte * '\n';
  while (true) {
    const std::uint64_t word = load8(p);
    const std::uint64_t found = zero_bytes(word ^ delimiters) | zero_bytes(word ^ kNewlines);
    if (found != 0) return p + std::countr_zero(found) / 8;
    p += 8;
  }
}

/// 0 if the eight bytes are hex digits, either case.
constexpr std::uint64_t hex8_faults(std::uint64_t word) {
  const std::uint64_t digit = word ^ (kEveryByte * '0');                            // 0 ... 9
  const std::uint64_t letter = (word | (kEveryByte * 0x20)) ^ (kEveryByte * 0x60);  // 1 ... 6
  // A set high bit is a fault in itself; without one no addition carries into the next byte.
  const std::uint64_t not_digit = digit + kEveryByte * (0x80 - 10);
  const std::uint64_t not_letter =
      (letter + kEveryByte * (0x80 - 7)) | ~(letter + kEveryByte * 0x7F);
  return (word | (not_digit & not_letter)) & kHighBits;
}

/// The number that eight hex digits stand for.
constexpr std::uint64_t hex8_value(std::uint64_t word) {
  std::uint64_t nibbles = (word & (kEveryByte * 0x0F)) + ((word >> 6) & kEveryByte) * 9;
  nibbles = __builtin_bswap64(nibbles);
  nibbles = (nibbles | (nibbles >> 4)) & 0x00FF00FF00FF00FFULL;
  nibbles = (nibbles | (nibbles >> 8)) & 0x0000FFFF0000FFFFULL;
  return (nibbles | (nibbles >> 16)) & 0xFFFFFFFFULL;
}

/// Eight hex digits, either case, as a number. False if a byte is not a hex digit.
inline bool hex8_of(const char* p, std::uint64_t& value) {
  const std::uint64_t word = load8(p);
  value = hex8_value(word);
  return hex8_faults(word) == 0;
}

/// 1 to 16 hex digits, with or without 0x.
inline bool hex_of(std::string_view text, std::uint64_t& value) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc{} && end == text.data() + text.size();
}

/// The whole text as a number in the notation of std::from_chars.
template <class Number>
bool whole_of(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

/// An unsigned 64-bit number, or a negative signed one (as its two's complement).
inline bool int_of(std::string_view text, std::uint64_t& value) {
  if (!text.starts_with('-')) return whole_of(text, value);
  std::int64_t negative = 0;
  if (!whole_of(text, negative)) return false;
  value = static_cast<std::uint64_t>(negative);
  return true;
}

/// Numbers of at least this size have no float that is near.
inline constexpr double kFirstTooLarge = 0x1.FFFFFFp127;

inline bool is_too_large(double x) { return std::fabs(x) >= kFirstTooLarge; }

/// Whether a text is a decimal number, and a float can be near it.
enum class NumberIs : std::uint8_t { kThere, kTooLarge, kNone };

/// The nearest double. Numbers that are too small for one are 0.
inline NumberIs number_of(std::string_view text, double& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    return NumberIs::kNone;
  }
  // std::from_chars does not tell too small from too large.
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);
  } else if (!std::isfinite(value)) {
    return NumberIs::kNone;  // a word
  }
  value += 0.0;  // -0 is 0
  return is_too_large(value) ? NumberIs::kTooLarge : NumberIs::kThere;
}

inline bool is_number(std::string_view text) {
  double value = 0;
  return number_of(text, value) == NumberIs::kThere;
}

/// Whether it is this word in any case.
inline bool is_word(std::string_view text, std::string_view lower_case_word) {
  return std::ranges::equal(text, lower_case_word, {}, [](char c) {
    return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

/// What programs write for a number that is not there, in any case: C, Excel, pandas, R, SQL.
inline bool is_no_number(std::string_view text) {
  constexpr std::array<std::string_view, 17> kWords{
      "nan",       "null",    "na",       "n/a",      "none",   "\\n",
      "-nan",      "<na>",    "#n/a",     "#n/a n/a", "#na",    "nan(ind)",
      "-nan(ind)", "1.#qnan", "-1.#qnan", "1.#ind",   "-1.#ind"};
  return text.size() <= 9 &&
         std::ranges::any_of(kWords, [&](std::string_view word) { return is_word(text, word); });
}

/// "inf" and "infinity", with a sign or without one, in any case.
inline bool is_infinity(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return is_word(text, "inf") || is_word(text, "infinity");
}

/// true as 1 and false as 0, in any case.
inline bool is_truth_value(std::string_view text, double& value) {
  value = is_word(text, "true") ? 1.0 : 0.0;
  return value == 1.0 || is_word(text, "false");
}

}  // namespace satrap::data
