#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace satrap::data {

/// The common properties of the texts of a column.
struct ColumnProfile {
  /// The narrowest kind that every value is of.
  enum class Kind : std::uint8_t {
    kInteger,  // of 64 bits
    kNumber,
    kHex,   // hex digits, the same number of them in every value
    kTime,  // a date, maybe with a time of day, as people and programs write it
    kText
  };

  Kind kind = Kind::kText;
  std::int64_t num_values = 0;  // not missing
  std::int64_t num_missing = 0;
  /// The texts that mean a missing value, without "": NULL, NaN, \N, "?", "-" and dashes; where
  /// numbers are expected also what programs write for none (NA, #N/A, -nan), and the few other
  /// words among many numbers. And how often each occurs.
  std::map<std::string, std::int64_t> missing;
  std::int64_t num_distinct = 0;  // values
  std::vector<std::pair<std::string, std::int64_t>>
      frequent;               // the most frequent values, and how
                              // often they occur; at most kFrequent
  bool is_ascending = false;  // in the order of rows, with at least two different values
  // Set for numbers:
  double min = 0.0, max = 0.0, mean = 0.0;
  std::vector<double> numbers;  // [num_values] ascending
  double upper_half = 0.0;      // the smallest value such that at most half of all are as large
  // Set for numbers and times:
  /// Every value is one that a part or an age is made of (docs/times.md): of kTime not 03/21/2026.
  bool are_read_as_times = false;
  // Set for a column with several values in a field:
  std::string separator;         // ""; one value
  bool is_in_brackets = false;   // "[1, 2]"
  bool are_long_digits = false;  // digits alone, and more than 64 bits have
  bool have_points = false;      // integers, of which some are written as 17.0
  /// Texts that a person reads as numbers: "39,02", "$1,000.50", "12 %".
  bool are_marked_numbers = false;
  std::int64_t most_elements = 0;  // in a field
  /// Its fields are lists already, even those of one value, and are read as ids alone.
  bool is_list = false;

  static constexpr std::size_t kFrequent = 20;

  bool is_numeric() const { return kind == Kind::kInteger || kind == Kind::kNumber; }
  bool is_missing(const std::string& text) const;
  double frequent_share(std::size_t rank) const;  // of the values; rank 0 is the most frequent one
};

/// Looks at the texts of one column, in the order of rows. `delimiter` is that between columns.
ColumnProfile profile_column(const std::vector<std::string>& texts, char delimiter);

/// Whether a text that is taken as missing would otherwise be a number that is too large to use:
/// inf, -Infinity.
bool means_infinity(const std::string& text);

/// The elements of a field of a column that has lists.
std::vector<std::string> elements_of(const std::string& field, const ColumnProfile& column);

}  // namespace satrap::data
