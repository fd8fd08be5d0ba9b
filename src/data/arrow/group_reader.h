#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/data/parquet.h"

namespace parquet {
class RowGroupReader;
}  // namespace parquet

namespace satrap::data {

/// Reads these columns of a row group by Arrow's column readers.
std::unique_ptr<ParquetGroupReader> make_group_reader(
    std::shared_ptr<parquet::RowGroupReader> group,
    std::span<const std::size_t> columns);

}  // namespace satrap::data
