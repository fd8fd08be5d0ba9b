#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/schema.h"
#include "src/data/text/column_map.h"

namespace satrap::data {

/// The columns that the schema reads of files whose every line names its values (JSON lines,
/// libsvm, libffm): a column may be in any place of a line, or missing. Immutable.
struct NamedColumns {
  explicit NamedColumns(const Schema& schema);

  /// One use of a column; `column` has this consumer alone.
  struct Use {
    ColumnMap::Column column;
    std::size_t place;  // in `names`
    const ColumnMap::Consumer& consumer() const { return column.consumers.front(); }
  };

  std::vector<std::string> names;      // of the columns, each once
  std::vector<Use> uses;               // in the order of the schema
  std::vector<std::size_t> selecting;  // places of Schema::selecting
};

/// The values of a line for the columns of NamedColumns, before it is put into a row. Its memory is
/// reused, and the texts are those of the line or of its reader.
struct LineValues {
  enum class Kind : std::uint8_t { kMissing, kText, kList, kNone };  // kNone: cannot be a value
  struct Value {
    Kind kind = Kind::kMissing;
    std::string_view text = {};      // of kNone: what is shown of it
    bool is_number = false;          // its format says so
    std::size_t begin = 0, end = 0;  // of a list: in `elements`
  };

  struct Element {
    std::string_view text;
    bool is_number = false;
  };

  std::vector<Value> values;  // [names]
  std::vector<Element> elements;

  void clear(std::size_t num_columns) {
    values.assign(num_columns, {});
    elements.clear();
  }
};

}  // namespace satrap::data
