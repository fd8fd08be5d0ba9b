#pragma once

#include <string>
#include <string_view>

#include "src/data/rows/field_parse.h"
#include "src/data/rows/number_text.h"

namespace satrap::data {

/// The text by which a value is an id, the same whatever format and program wrote it (rule 2 of
/// SchemaConfig::value_rule): truth values are "true" and "false"; a number with a point, or with
/// an exponent and its "+", that is whole is its digits ("17.0", as pandas writes integers beside
/// gaps, is "17"); any other text stays as it is. What is returned is the given text, a literal, or
/// held until the next call.
class CanonicalText {
 public:
  /// `decimal`: the character before the fraction of a number.
  explicit CanonicalText(char decimal) : decimal_(decimal) {}

  /// For a text whose type is not known: "1e5" may be hex digits, and "1.10" a version.
  std::string_view of_text(std::string_view text) {
    if (has_either(text, decimal_, '+')) return of_digits(text);
    return text.size() == 4 || text.size() == 5 ? of_word(text) : text;
  }

  /// The text of the value of a number in the notation of JSON.
  std::string_view of_number(std::string_view number);

 private:
  std::string_view of_digits(std::string_view text);
  std::string_view of_exponent(std::string_view text);
  static std::string_view of_word(std::string_view text);

  const char decimal_;
  NumberText buffer_;
  std::string digits_;
};

}  // namespace satrap::data
