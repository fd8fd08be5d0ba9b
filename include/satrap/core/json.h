#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace satrap {

/// The integer in a JSON value. Unlike its get<T>(), this takes no fraction, truth value or number
/// that T does not hold. Throws nlohmann::json::type_error.
template <std::integral T, class Json>
T integer_of(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<std::int64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  }
  throw nlohmann::json::type_error::create(
      302, std::string("type must be an integer in range, but is ") + value.type_name(), &value);
}

/// The integer at a key. Throws nlohmann::json::exception.
template <std::integral T = std::int64_t, class Json>
T integer_at(const Json& object, const char* key) {
  return integer_of<T>(object.at(key));
}

}  // namespace satrap
