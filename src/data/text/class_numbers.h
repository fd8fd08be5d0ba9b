#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace satrap::data {

/// The numbers of the texts of a label's classes.
class ClassNumbers {
 public:
  explicit ClassNumbers(const std::vector<std::string>& texts = {}) {
    for (std::size_t c = 0; c < texts.size(); ++c) {
      numbers_.emplace_back(texts[c], static_cast<float>(c));
    }
    std::ranges::sort(numbers_);
  }

  /// nullopt: no class has this text.
  std::optional<float> find(std::string_view text) const {
    const auto at = std::ranges::lower_bound(numbers_, text, {}, &Number::first);
    return at != numbers_.end() && at->first == text ? std::optional(at->second) : std::nullopt;
  }

 private:
  using Number = std::pair<std::string, float>;
  std::vector<Number> numbers_;  // by text
};

}  // namespace satrap::data
