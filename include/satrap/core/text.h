#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace satrap {

/// A whole text as a number, whatever the locale: digits and a "-" for integers, the usual forms
/// for floats ("1", "-.5", "1e-3", "nan"). Empty: not such a number, or it does not fit T.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto result = std::from_chars(begin, end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

/// `text` with the letters A to Z in lower case.
std::string lower_case(std::string_view text);

/// As parse_number of an integer, in hexadecimal without a prefix: "68fd1e64".
template <class T>
std::optional<T> parse_hex(std::string_view text) {
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  constexpr int kBase = 16;
  const auto result = std::from_chars(begin, end, value, kBase);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

/// `text` as a terminal or a log may show it: control characters (C0 with tabs and line ends, DEL,
/// C1) and bytes that are not UTF-8 are written as \x1b. A terminal obeys such characters; what is
/// in data or file names must not command it.
std::string printable(std::string_view text);

/// Whether all of it is UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

/// "8GiB", "1.5 MB", "100": bytes, with units of 1000 (kB, MB, GB, TB) or 1024 (KiB, MiB, GiB, TiB)
/// in any case. Throws Error(kInvalidConfig) for anything else, and beyond 2^63.
std::int64_t parse_bytes(std::string_view text);

/// "12.5%": 0.125, at most 1; nullopt if it does not end with '%'. Throws Error(kInvalidConfig) for
/// other text that does.
std::optional<double> parse_share(std::string_view text);

/// Bytes, or a share of `whole` bytes.
std::int64_t parse_bytes_or_share(std::string_view text, std::int64_t whole);

/// "10min", "30s", "1h30min", "500ms", "1.5 d": seconds. Units: ms, s, min (or m), h, d; only "0"
/// needs none. Throws Error(kInvalidConfig) for anything else.
double parse_duration(std::string_view text);

std::string format_bytes(std::int64_t bytes);  // "512B", "1.50KiB", "8.00GiB"
std::string format_duration(double seconds);   // "850ms", "12.3s", "3min20s", "2h05min", "3d04h"
std::string with_commas(std::int64_t number);  // "12,345", "-1,000"
std::string format_count(double count);        // "999", "1.23M", "45.6k", "7.89B"

}  // namespace satrap
