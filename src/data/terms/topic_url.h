#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace satrap::data {

/// kafka://brokers/topic
struct TopicUrl {
  static constexpr std::string_view kScheme = "kafka://";

  std::string brokers;  // "host:port,host"
  std::string topic;

  /// Throws Error(kInvalidConfig) for text that is none.
  static TopicUrl parse(const std::string& text);
  std::string text() const { return std::string(kScheme) + brokers + "/" + topic; }
};

/// "2026-11-26T12:30:00Z", with or without Z, or "2026-11-26", in UTC: milliseconds since 1970.
/// Throws Error(kInvalidConfig) for other text.
std::int64_t parse_utc_time(const std::string& text);

/// A broker gets what a property says: only variables with KAFKA in their names are meant for one.
/// Throws Error(kInvalidConfig) for ${NAME} with another name.
void check_environment_names(const std::string& text);

/// With the environment's values for ${NAME}. Throws Error(kInvalidConfig) if one is not set, or
/// by check_environment_names().
std::string with_environment(const std::string& text);

}  // namespace satrap::data
