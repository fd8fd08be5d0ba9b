#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "satrap/core/error.h"

namespace satrap {

/// A value of an enum and its word in configurations and messages. The table of an enum lies beside
/// it, in the order in which messages list the words:
///
///   enum class Mode { kSync, kAsync };
///   inline constexpr Choice<Mode> kModes[] = {{"sync", Mode::kSync}, {"async", Mode::kAsync}};
///
/// Each value has a word. One with several is written as the first of them.
template <class Enum>
struct Choice {
  std::string_view word;
  Enum value;
};

/// The table of an enum whose values count from 0, by their names in that order.
template <class Enum, std::size_t kSize>
constexpr std::array<Choice<Enum>, kSize> numbered_choices(const char* const (&names)[kSize]) {
  std::array<Choice<Enum>, kSize> choices;
  for (std::size_t i = 0; i < kSize; ++i) choices[i] = {names[i], static_cast<Enum>(i)};
  return choices;
}

/// A table as an argument of a function that knows the enum from another one.
template <class Enum>
using Choices = std::span<const Choice<std::type_identity_t<Enum>>>;

template <class Enum>
constexpr std::string_view word_of(Enum value, Choices<Enum> choices) {
  const auto found = std::ranges::find(choices, value, &Choice<Enum>::value);
  SATRAP_CHECK(found != choices.end(), "value ", static_cast<int>(value), " has no word");
  return found->word;
}

/// nullopt: no value has this word.
template <class Enum>
constexpr std::optional<Enum> value_of(std::string_view word, Choices<Enum> choices) {
  const auto found = std::ranges::find(choices, word, &Choice<Enum>::word);
  return found == choices.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace satrap
