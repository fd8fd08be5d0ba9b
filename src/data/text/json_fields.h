#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "satrap/data/schema.h"
#include "src/data/text/field_reader.h"
#include "src/data/text/named_columns.h"
#include "src/data/text/text_block.h"

namespace satrap::data {

/// Finds the values of columns in a line of JSON. A column is a key of the line's object, or keys
/// of objects in each other, joined by dots; the last of several equal ones counts. A number, true
/// and false are their texts as they are written, null and NaN a missing value; texts are
/// unescaped. What no column reads must have its brackets and quotes in order, and is not looked at
/// otherwise.
class JsonFields {
 public:
  JsonFields(const Schema& schema, const NamedColumns& columns);
  ~JsonFields();
  JsonFields(const JsonFields&) = delete;
  JsonFields& operator=(const JsonFields&) = delete;

  static bool is_blank(const char* line) { return is_blank_line(line); }

  /// As NamedParser says. The texts are valid until the next call.
  bool find(const char* line, const char* end, LineValues& found);
  static std::string_view id_of(std::string_view element) { return element; }
  const RowFault& fault() const { return fault_; }

 private:
  class Reader;
  const std::unique_ptr<Reader> reader_;
  std::string reason_;
  RowFault fault_;
};

}  // namespace satrap::data
