#pragma once

#include <cstdint>
#include <vector>

#include "src/data/columnar/parquet.h"

namespace parquet {
class ColumnDescriptor;
class SchemaDescriptor;
}  // namespace parquet

namespace satrap::data {

/// The columns of a file, in its order.
std::vector<ParquetFile::Column> describe_columns(const parquet::SchemaDescriptor& schema);

/// The definition level from which on a level of a list column stands for an element.
std::int16_t element_level(const parquet::ColumnDescriptor& column);

/// Whether the column's integers are unsigned.
bool is_unsigned(const parquet::ColumnDescriptor& column);

}  // namespace satrap::data
