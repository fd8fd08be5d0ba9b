#include "src/data/arrow/group_bounds.h"

#include <cstdint>
#include <string_view>

#include <parquet/statistics.h>
#include <parquet/types.h>

#include "src/data/arrow/column_kind.h"

namespace satrap::data {
namespace {

/// Calls put(value) with the least and the greatest of them.
template <class Type, class Put>
void put_both(const parquet::Statistics& statistics, const Put& put) {
  const auto& typed = static_cast<const parquet::TypedStatistics<Type>&>(statistics);
  put(typed.min());
  put(typed.max());
}

}  // namespace

bool find_group_bounds(const parquet::FileMetaData& metadata,
                       int group,
                       int column,
                       ParquetValues& bounds) {
  bounds.clear();
  const auto statistics = metadata.RowGroup(group)->ColumnChunk(column)->statistics();
  if (statistics == nullptr || !statistics->HasMinMax()) return false;
  const parquet::ColumnDescriptor& described = *metadata.schema()->Column(column);
  const auto put_integer = [&](auto value) { bounds.integers.push_back(std::int64_t{value}); };
  switch (described.physical_type()) {
    case parquet::Type::BOOLEAN:
      put_both<parquet::BooleanType>(*statistics, put_integer);
      return true;
    case parquet::Type::INT32:
      put_both<parquet::Int32Type>(*statistics, [&](std::int32_t value) {
        is_unsigned(described) ? put_integer(static_cast<std::uint32_t>(value))
                               : put_integer(value);
      });
      return true;
    case parquet::Type::INT64:
      put_both<parquet::Int64Type>(*statistics, put_integer);
      return true;
    case parquet::Type::FLOAT:
      put_both<parquet::FloatType>(*statistics, [&](float x) { bounds.floats.push_back(x); });
      return true;
    case parquet::Type::DOUBLE:
      put_both<parquet::DoubleType>(*statistics, [&](double x) { bounds.doubles.push_back(x); });
      return true;
    case parquet::Type::BYTE_ARRAY:
      put_both<parquet::ByteArrayType>(*statistics, [&](const parquet::ByteArray& value) {
        bounds.texts.push(std::string_view(value));
      });
      return true;
    default:
      return false;
  }
}

}  // namespace satrap::data
