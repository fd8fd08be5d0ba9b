#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace satrap::data {

/// What a row has in a column.
enum class FieldFound : std::uint8_t {
  kText,
  kMissing,
  kUnreadable  // the column cannot be found in it, or holds what is no single value
};

/// What is known of a column in many rows without reading them: all values that are neither missing
/// nor nan are between these two.
struct ColumnBounds {
  std::string least, greatest;
  bool are_numbers = false;  // the values are ordered as such, else as texts
};

/// One comparison of a column with values that are written in the configuration, such as
/// day >= 2026-11-01. A value is compared as a number if it is one without quotes, true and false
/// being 1 and 0; a text that is no number is then unequal to it, and neither less nor greater.
/// Other values are compared as texts, byte by byte. A missing value is the empty text, and neither
/// less nor greater than any.
class Comparison {
 public:
  enum class Operator : std::uint8_t {
    kEqual,     // to one of the values
    kNotEqual,  // to any of them
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual
  };

  struct Value {
    std::string text;
    bool is_quoted = false;
  };

  /// `has_decimal_comma`: numbers in the column may be written as 0,5.
  Comparison(std::string column,
             Operator op,
             const std::vector<Value>& values,
             bool has_decimal_comma);

  const std::string& column() const { return column_; }

  bool holds(std::string_view text) const;

  /// The first of the values that is neither empty nor the beginning of a time such as
  /// 2026-11-27T21:05:09.125, which is how dates and times of Parquet are compared; "": there is
  /// none.
  std::string no_time() const;

  /// False: it holds for no row of these bounds.
  bool may_hold(const ColumnBounds& bounds) const;

 private:
  /// Holds integers of 64 bits exactly, with and without sign.
  using Number = long double;
  struct Operand {
    std::string text;
    std::optional<Number> number;  // then it is compared as one
  };

  std::optional<Number> number_of(std::string_view text) const;

  std::string column_;
  Operator operator_;
  bool has_decimal_comma_;
  bool has_numbers_ = false;  // among the operands
  std::vector<Operand> operands_;
};

/// Comparisons joined by `and`: COLUMN = VALUE, or with !=, <, <=, >, >=; COLUMN in (VALUE, VALUE),
/// COLUMN not in (VALUE). Names and values with spaces or any of ,()=!<>'" are in single or double
/// quotes, which are doubled within. Throws Error(kInvalidConfig), without the place, if `text` is
/// anything else.
std::vector<Comparison> parse_comparisons(std::string_view text, bool has_decimal_comma);

}  // namespace satrap::data
