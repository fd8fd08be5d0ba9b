#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace satrap {

// One line per message to stderr, with date, time and level, whole even from many threads:
//
//   log_info("resumed from {} (step {})", path, step);
//
// Formats are {fmt}'s, checked at compile time. A message may contain bytes of the user's data: it
// is written as printable() gives it. Results are never logged; they go to stdout.

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// Messages below this level are dropped; the default is kInfo.
void set_log_level(LogLevel level);

/// "debug", "info", "warning", "error" or "off"; Error(kInvalidConfig) for anything else.
LogLevel parse_log_level(const std::string& name);

bool is_logged(LogLevel level);
void log_message(LogLevel level, std::string_view message);

template <class... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (is_logged(level)) log_message(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace satrap
