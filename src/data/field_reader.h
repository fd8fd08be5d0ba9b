#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "satrap/data/id_texts.h"
#include "satrap/data/schema.h"
#include "src/data/column_map.h"
#include "src/data/row_filler.h"

namespace satrap::data {

/// Why a row is bad. Views point into its text or at literals.
struct RowFault {
  const ColumnMap::Column* column = nullptr;  // null: the row as a whole
  std::string_view reason;
  std::string_view field;
  bool shows_field = false;
  bool about_quotes = false;

  std::string text() const;  // "column 'I3': expected a number, got "x"", of a fault of a column
  std::string kind() const;  // the same without the value
};

/// Reads any field, for all who want it: in quotes or not, missing, a bag, a label of texts.
/// Nothing is allocated per row. The schema and the row must outlive it.
class FieldReader {
 public:
  /// `texts` gets those of ids that are hashes of them; may be null.
  FieldReader(const Schema& schema, RowFiller& row, IdTexts* texts = nullptr);

  /// Puts what the field at `p` says into the open row. Returns its end (at the delimiter or '\n'),
  /// or null: fault() says why.
  const char* read(const char* p, const ColumnMap::Column& column);

  /// The field of this number, from 0, in the line at `line`. False if the line has none there, or
  /// a missing value.
  bool find(const char* line, std::int64_t column, std::string_view& field);
  const RowFault& fault() const { return fault_; }

 private:
  const char* find_field(const char* p, std::string_view& field);
  bool unquote(const char*& p, std::string_view& field);
  bool is_missing(std::string_view field) const;
  bool consume(const ColumnMap::Consumer& consumer, std::string_view field, bool missing);
  bool read_label(const LabelConfig& config, std::string_view field, float& label);
  bool read_bag(std::int64_t target, std::string_view field);
  bool read_id(const FeatureConfig& feature, std::string_view text, std::uint64_t& id);
  bool fail(std::string_view reason, std::string_view field);
  bool fail_quotes(std::string_view reason);

  const Schema& schema_;
  RowFiller& row_;
  IdTexts* const texts_;
  const char delimiter_;
  const char quote_;  // '\0': none
  const bool trim_;

  const ColumnMap::Column* column_ = nullptr;  // of the field that is being read
  RowFault fault_;
  std::string unquoted_;  // a field whose quotes had to be removed
};

}  // namespace satrap::data
