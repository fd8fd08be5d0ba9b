#pragma once

#include <cstdint>

#include "satrap/data/sample.h"
#include "src/data/files/file_list.h"

namespace satrap::data {

/// As read_sample, of Parquet: the columns that satrap reads, and their values as texts. Whole
/// floating-point numbers have ".0", as pandas writes them; the elements of a list are separated by
/// "|".
Sample read_parquet_sample(const FileList& files, std::int64_t max_rows);

}  // namespace satrap::data
