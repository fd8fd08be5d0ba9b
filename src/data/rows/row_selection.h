#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/config.h"
#include "satrap/data/role.h"
#include "satrap/data/schema.h"
#include "src/data/rows/canonical_text.h"
#include "src/data/rows/comparison.h"
#include "src/data/rows/row_part.h"

namespace satrap::data {

enum class RowChoice : std::uint8_t {
  kRead,
  kLeftOut,   // it does not meet the conditions
  kOtherPart  // it is of the other role
};

/// The rows of the files that a role reads: those of its part, if training and evaluation divide
/// them, for which data.train.where or data.eval.where holds. This follows from the row's number
/// and its texts in some columns alone: it is the same in every pass and on every rank. Immutable.
class RowSelection {
 public:
  /// Null: all. Throws Error(kInvalidConfig), naming the key, for a condition that cannot be read.
  static std::shared_ptr<const RowSelection> of(const DataConfig& config, Role role);

  /// The columns it looks at, for Schema::selecting. Their places there are those below.
  const std::vector<Schema::SelectingColumn>& columns() const { return columns_; }

  /// Differs between selections that differ.
  const std::string& identity() const { return identity_; }

  /// The condition of the rows, as the user has written it; "": there is no condition.
  const std::string& condition() const { return condition_; }

  /// find(place, text) returns what the row has in that column, and its text. Rows whose texts
  /// cannot be found are read, so that they are reported as bad rows. A row without a text in the
  /// column that divides the rows is in the part that its number says.
  template <class Find>
  RowChoice choice_of(std::int64_t row, const Find& find) const {
    if (!meets_conditions(find)) return RowChoice::kLeftOut;
    return !part_ || is_in_part(row, find) ? RowChoice::kRead : RowChoice::kOtherPart;
  }

  /// About the share of the rows that are in the part.
  double part_share() const { return part_share_; }

  /// False: it has none of some rows; bounds_of(place) is what is known of their column.
  bool may_have_any(const std::function<std::optional<ColumnBounds>(std::size_t)>& bounds_of) const;

 private:
  /// All that is asked of a column.
  struct Test {
    std::size_t place = 0;  // in columns_
    std::vector<Comparison> comparisons;
  };

  template <class Find>
  bool meets_conditions(const Find& find) const {
    for (const Test& test : tests_) {
      std::string_view text;
      const FieldFound found = find(test.place, text);
      if (found == FieldFound::kUnreadable) return true;
      if (found == FieldFound::kMissing) text = {};
      for (const Comparison& comparison : test.comparisons) {
        if (!comparison.holds(text)) return false;
      }
    }
    return true;
  }

  template <class Find>
  bool is_in_part(std::int64_t row, const Find& find) const {
    std::string_view text;
    if (dividing_ >= 0 && find(static_cast<std::size_t>(dividing_), text) == FieldFound::kText) {
      if (value_rule_ == 1) return part_->has(text);
      CanonicalText canonical(decimal_);
      return part_->has(canonical.of_text(text));
    }
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), row).ptr;
    return part_->has({digits.data(), end});
  }

  void divide(const EvalConfig& eval, bool is_evaluation);
  void add_conditions(const std::string& text, const std::string& key, bool has_decimal_comma);
  std::size_t place_of(const std::string& column, const std::string& reader);

  std::vector<Schema::SelectingColumn> columns_;
  std::optional<RowPart> part_;
  double part_share_ = 1.0;
  std::int64_t dividing_ = -1;  // place of the column that divides the rows; -1: none does
  std::vector<Test> tests_;
  std::string identity_, condition_;
  std::int64_t value_rule_ = kValueRule;
  char decimal_ = '.';
};

/// `schema` as this role reads files.
Schema schema_of_role(Schema schema, const DataConfig& config, Role role);

}  // namespace satrap::data
