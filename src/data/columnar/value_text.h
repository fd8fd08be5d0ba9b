#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "satrap/data/config.h"
#include "src/data/columnar/parquet.h"
#include "src/data/rows/number_text.h"

namespace satrap::data {

/// An element of a column of this kind as text: of a floating-point number text_of_real, or by rule
/// 1 of SchemaConfig::value_rule the shortest text; of a truth value true or false; of a date
/// 2026-11-27; of a time 2026-11-27T21:05:09, in UTC if it is of a zone, with .125 or more digits
/// behind it if it has a fraction, in threes. Dates and times outside the years 0 to 9999 are as
/// the integers that they are in the file. `buffer` and `values` hold the text.
std::string_view text_of(const ParquetValues& values,
                         ParquetFile::Kind kind,
                         std::size_t element,
                         NumberText& buffer,
                         std::int64_t value_rule = kValueRule);

}  // namespace satrap::data
