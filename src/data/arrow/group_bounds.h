#pragma once

#include <parquet/metadata.h>

#include "src/data/columnar/parquet.h"

namespace satrap::data {

/// ParquetFile::find_bounds of a column without lists, by the statistics that the writer of the
/// file may have left.
bool find_group_bounds(const parquet::FileMetaData& metadata,
                       int group,
                       int column,
                       ParquetValues& bounds);

}  // namespace satrap::data
