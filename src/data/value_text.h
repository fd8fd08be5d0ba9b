#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "src/data/parquet.h"

namespace satrap::data {

/// Room for the text of any number.
using NumberText = std::array<char, 32>;

/// An element of a column of this kind as text: of a number the shortest that stands for it.
/// `buffer` and `values` hold the text.
std::string_view text_of(const ParquetValues& values,
                         ParquetFile::Kind kind,
                         std::size_t element,
                         NumberText& buffer);

}  // namespace satrap::data
