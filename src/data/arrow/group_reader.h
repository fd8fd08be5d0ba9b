#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/data/arrow/open_group.h"
#include "src/data/columnar/parquet.h"

namespace satrap::data {

/// Reads these columns of the row group by Arrow's column readers.
std::unique_ptr<ParquetGroupReader> make_group_reader(std::unique_ptr<OpenGroup> group,
                                                      std::span<const std::size_t> columns);

}  // namespace satrap::data
