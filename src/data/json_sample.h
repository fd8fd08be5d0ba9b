#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/sample.h"

namespace satrap::data {

/// Fills the columns of a sample from lines of JSON: a column for each key, in the order of their
/// first rows, "a.b" for a key within another, with values as texts. The elements of an array are
/// separated by "|"; keys with arrays of objects or of arrays are left out. Lines that are no
/// object count as ragged.
void sample_json(const std::vector<std::string>& lines, std::int64_t max_rows, Sample& sample);

}  // namespace satrap::data
