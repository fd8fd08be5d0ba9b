#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "satrap/data/schema.h"
#include "src/data/text/column_map.h"
#include "src/data/text/field_reader.h"
#include "src/data/text/named_columns.h"

namespace satrap::data {

/// Finds the values of columns in a line "label index:value ... # comment" of libsvm or, with
/// fields, "label field:index:value ..." of libffm. Columns are
///   label: the first word;  qid: the value of the index of this name, in libsvm;
///   3: in libsvm the value of index 3; in libffm the indices of field 3 as ids, or its value;
///   features: the indices of the whole line as ids, in libsvm.
/// An id is the text "index:value" where weights are read; else the value must be 1. A field of
/// libffm that only divides the rows is read with its weights, whatever these are.
class LibsvmFields {
 public:
  LibsvmFields(const Schema& schema, const NamedColumns& columns)
      : LibsvmFields(schema, columns, false) {}

  /// Blank, or a comment alone.
  static bool is_blank(const char* line);

  /// As NamedParser says. The texts are those of the line.
  bool find(const char* line, const char* end, LineValues& found);
  static std::string_view id_of(std::string_view element) {
    return element.substr(0, element.find(':'));
  }
  const RowFault& fault() const { return fault_; }

 protected:
  LibsvmFields(const Schema& schema, const NamedColumns& columns, bool has_fields);

 private:
  /// The part of a column's words that is wanted.
  enum class Want : std::uint8_t { kValue, kIds, kWeightedIds };
  struct Column {
    ColumnMap::Column column;  // its name alone
    Want want = Want::kValue;
    std::vector<std::string_view> ids = {};  // of the line
  };
  static constexpr std::size_t kNoColumn = SIZE_MAX;

  void check_name(const std::string& name) const;
  Want want_of(const Schema& schema, const NamedColumns& columns, std::size_t place) const;
  bool take_word(std::string_view word, LineValues& found);
  bool put(std::size_t place, std::string_view index, std::string_view value, LineValues& found);
  bool fail(const ColumnMap::Column* column, std::string_view reason, std::string_view word);

  const bool has_fields_;
  std::vector<Column> columns_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // of columns that are numbers
  std::size_t label_ = kNoColumn, qid_ = kNoColumn, features_ = kNoColumn;
  RowFault fault_;
};

class LibffmFields : public LibsvmFields {
 public:
  LibffmFields(const Schema& schema, const NamedColumns& columns)
      : LibsvmFields(schema, columns, true) {}
};

}  // namespace satrap::data
