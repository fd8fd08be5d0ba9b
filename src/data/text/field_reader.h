#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/id_texts.h"
#include "satrap/data/schema.h"
#include "src/data/rows/canonical_text.h"
#include "src/data/rows/comparison.h"
#include "src/data/rows/cross_limit.h"
#include "src/data/rows/field_parse.h"
#include "src/data/rows/row_filler.h"
#include "src/data/text/class_numbers.h"
#include "src/data/text/column_map.h"

namespace satrap::data {

/// Why a row is bad. Views point into its text or at literals.
struct RowFault {
  const ColumnMap::Column* column = nullptr;  // null: the row as a whole
  std::string_view reason;
  std::string_view field;
  bool shows_field = false;
  bool about_quotes = false;
  std::string_view cross = {};  // the row has too many pairs for this one; "": it is something else

  std::string text() const;  // "column 'I3': expected a number, got "x"", of a fault of a column
  std::string kind() const;  // the same without the value
};

/// Reads any field, for all who want it: in quotes or not, missing, a bag, a label of texts.
/// Nothing is allocated per row. The schema and the row must outlive it.
class FieldReader {
 public:
  /// `has_decimal_comma`: numbers are written as 0,5. `texts` gets those of ids that are hashes of
  /// them; may be null.
  FieldReader(const Schema& schema,
              RowFiller& row,
              bool has_decimal_comma,
              IdTexts* texts = nullptr);

  /// TextBlock::stand_in of the text that is read next.
  void use_stand_in(char stand_in) { stand_in_ = stand_in; }

  /// Puts what the field at `p` says into the open row. Returns its end (at the delimiter or '\n'),
  /// or null: fault() says why. Not inlined, so that the fast path of RowParser stays small.
  [[gnu::noinline]] const char* read(const char* p, const ColumnMap::Column& column);

  /// The same with the text of a value that was not written as a field; false: fault() says why.
  bool read_value(std::string_view text, bool is_null, const ColumnMap::Column& column);

  /// The same of a list for a consumer of ids: next(element) sets the text of the next element, or
  /// returns false at the end. Empty elements count for nothing.
  template <class Next>
  bool read_list(const ColumnMap::Column& column, std::int64_t target, const Next& next) {
    column_ = &column;
    const std::int64_t before = row_.num_ids(target);
    if (!read_elements(target, next)) return false;
    if (row_.num_ids(target) == before) add_missing(target);
    return true;
  }

  /// The id that a text stands for. False: it is none.
  bool read_id(const FeatureConfig& feature, std::string_view text, std::uint64_t& id);
  bool is_missing(std::string_view text) const;

  /// The time (time_text.h) that a text stands for; `value` stays as it is if the text says that
  /// there is none. False: it is no time.
  bool read_time(std::string_view text, double& value);
  bool has_missing_texts() const { return !schema_.text.missing.empty(); }
  void add_missing(std::int64_t target);  // if a missing value has an id of its own

  /// Whether the open row, whose values have all been read, may be used; false: fault() says why
  /// not.
  bool check_row() { return !crosses_.has_crosses() || check_crosses(); }

  /// The field of this number, from 0, in the line at `line`.
  FieldFound find(const char* line, std::size_t column, std::string_view& field);
  const RowFault& fault() const { return fault_; }

 private:
  /// The rules of FeatureConfig for an id column in texts.
  struct Bag {
    std::int64_t limit;     // ids kept
    char separator;         // '\0': none
    char weight_separator;  // '\0': none
    bool keeps_last, missing_is_id;
  };

  const char* find_field(const char* p, std::string_view& field);
  bool unquote(const char*& p, std::string_view& field);
  bool consume(const ColumnMap::Consumer& consumer, std::string_view field, bool missing);
  std::string_view comparable(std::string_view text);
  bool read_number_or_missing(std::string_view field, bool missing, double& value);
  bool check_weight(double weight, std::string_view field);
  bool miss_label(std::int64_t target);
  bool read_label(const LabelConfig& config, std::string_view field, std::int64_t target);
  bool read_positive(const LabelConfig& config, std::string_view field, float& label);
  bool read_bag(std::int64_t target, std::string_view field);
  bool read_element(std::int64_t target, std::string_view element);
  bool read_int(std::string_view text, std::uint64_t& id);
  NumberIs read_number(std::string_view text, double& value);
  bool check_crosses();
  bool fail(std::string_view reason, std::string_view field);
  bool fail_number(std::string_view field);
  bool fail_quotes(std::string_view reason);

  /// As many as the feature keeps.
  template <class Next>
  bool read_elements(std::int64_t target, const Next& next) {
    const Bag& bag = bags_[static_cast<std::size_t>(target)];
    std::string_view element;
    while ((bag.keeps_last || row_.num_ids(target) < bag.limit) && next(element)) {
      if (!read_element(target, element)) return false;
    }
    if (bag.keeps_last) row_.keep_last_ids(target, bag.limit);
    return true;
  }

  const Schema& schema_;
  RowFiller& row_;
  IdTexts* const texts_;
  const char delimiter_;
  const char quote_;  // '\0': none
  const bool has_decimal_comma_;
  const bool trim_;
  char stand_in_ = 0;

  const ColumnMap::Column* column_ = nullptr;  // of the field that is being read
  RowFault fault_;
  std::string unquoted_;    // a field whose quotes had to be removed
  std::string with_point_;  // a number that had a decimal comma
  CanonicalText canonical_;
  std::vector<Bag> bags_;            // [schema.id_columns]
  std::vector<LabelConfig> labels_;  // [schema.labels] with texts that can be compared
  ClassNumbers classes_;             // of the values of the only label
  CrossLimit crosses_;
  std::string num_ids_;  // of a cross with too many pairs: "300 x 400"
};

}  // namespace satrap::data
