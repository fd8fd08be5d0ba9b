#pragma once

#include <cstdint>
#include <memory>

#include "src/data/columnar/parquet.h"

namespace arrow {
class Array;
class DataType;
}  // namespace arrow

namespace satrap::data {

/// How satrap reads a column, not a struct, of this type of Arrow's; its name is left empty.
ParquetFile::Column describe_type(const arrow::DataType& type);

/// The values of an array of a type that is read, from its first row on. The array must be valid.
class ArrayValues {
 public:
  explicit ArrayValues(std::shared_ptr<arrow::Array> array);

  /// Replaces `values` by those of the next rows, of at least as many.
  void read(std::int64_t num_rows, ParquetValues& values);
  void skip(std::int64_t num_rows) { row_ += num_rows; }

 private:
  void append(std::int64_t begin, std::int64_t end, ParquetValues& values);

  std::shared_ptr<arrow::Array> lists_;     // null: the column is no list
  std::shared_ptr<arrow::Array> elements_;  // of a dictionary: its indices
  std::shared_ptr<arrow::Array> entries_;   // of a dictionary
  Texts dictionary_;
  std::int64_t row_ = 0;
  std::int64_t num_elements_ = 0;  // that the values have
};

}  // namespace satrap::data
