#pragma once

#include <memory>
#include <string>

#include "src/data/columnar/parquet.h"

namespace satrap::data {

/// Creates a file of Parquet, or replaces it.
std::unique_ptr<ParquetOutput> create_output(const std::string& path);

}  // namespace satrap::data
