#include "src/data/terms/topic_url.h"

#include <cstdlib>
#include <ctime>
#include <iterator>

#include "satrap/core/error.h"

namespace satrap::data {
namespace {

constexpr std::string_view kTopicCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

[[noreturn]] void refuse_url(const std::string& text, const char* why) {
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("'", text, "' ", why, "; a topic is written kafka://host:9092,host:9092/topic"));
}

/// `text` with value_of(NAME) for each ${NAME}.
template <class ValueOf>
std::string replaced(const std::string& text, const ValueOf& value_of) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find("${", at);
    const std::size_t end = begin == std::string::npos ? begin : text.find('}', begin);
    if (end == std::string::npos) return result + text.substr(at);
    result += text.substr(at, begin - at) + value_of(text.substr(begin + 2, end - begin - 2));
    at = end + 1;
  }
  return result;
}

}  // namespace

TopicUrl TopicUrl::parse(const std::string& text) {
  if (!text.starts_with(kScheme)) refuse_url(text, "does not begin with kafka://");
  const std::size_t slash = text.find('/', kScheme.size());
  if (slash == std::string::npos) refuse_url(text, "names no topic");
  TopicUrl url{.brokers = text.substr(kScheme.size(), slash - kScheme.size()),
               .topic = text.substr(slash + 1)};
  if (url.brokers.empty()) refuse_url(text, "names no broker");
  if (url.brokers.find('@') != std::string::npos) {
    // Not the text, which may hold a password.
    throw Error(ErrorCode::kInvalidConfig,
                "a kafka:// URL has no user and no password: data.kafka.properties has them "
                "(sasl.username, sasl.password)");
  }
  if (url.topic.empty()) refuse_url(text, "names no topic");
  if (url.topic.find_first_not_of(kTopicCharacters) != std::string::npos) {
    refuse_url(text, "names a topic with characters other than letters, digits, '.', '_' and '-'");
  }
  return url;
}

std::int64_t parse_utc_time(const std::string& text) {
  for (const char* format : {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"}) {
    std::tm time{};
    const char* const end = strptime(text.c_str(), format, &time);
    if (end == nullptr || *end != '\0') continue;
    const std::tm given = time;
    const std::int64_t seconds = timegm(&time);  // makes March 3rd of February 31st
    if (time.tm_mon == given.tm_mon && time.tm_mday == given.tm_mday) return seconds * 1000;
  }
  throw Error(ErrorCode::kInvalidConfig,
              concat("'", text, "' is no time in UTC such as 2026-11-26 or 2026-11-26T12:30:00Z"));
}

void check_environment_names(const std::string& text) {
  replaced(text, [](const std::string& name) -> std::string {
    if (name.find("KAFKA") != std::string::npos) return "";
    throw Error(ErrorCode::kInvalidConfig,
                concat("${", name,
                       "} would go to a broker: only variables of the environment with "
                       "KAFKA in their names may, such as ${KAFKA_PASSWORD}"));
  });
}

std::string with_environment(const std::string& text) {
  check_environment_names(text);
  return replaced(text, [](const std::string& name) -> std::string {
    if (const char* const value = std::getenv(name.c_str())) return value;
    throw Error(ErrorCode::kInvalidConfig,
                concat("data.kafka.properties: ${", name, "} is not set in the environment"));
  });
}

}  // namespace satrap::data
