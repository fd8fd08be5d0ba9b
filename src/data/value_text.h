#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "src/data/parquet.h"

namespace satrap::data {

/// Room for the text of any number or time.
using NumberText = std::array<char, 32>;

/// An element of a column of this kind as text: of a number the shortest that stands for it; of a
/// date 2026-11-27; of a time 2026-11-27T21:05:09, in UTC if it is of a zone, with .125 or more
/// digits behind it if it has a fraction, in threes. Dates and times outside the years 0 to 9999
/// are as the integers that they are in the file. `buffer` and `values` hold the text.
std::string_view text_of(const ParquetValues& values,
                         ParquetFile::Kind kind,
                         std::size_t element,
                         NumberText& buffer);

}  // namespace satrap::data
