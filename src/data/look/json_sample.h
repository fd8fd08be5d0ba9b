#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/sample.h"

namespace satrap::data {

/// Fills the columns of a sample from lines of JSON: a column for each key, in the order of their
/// first rows, "a.b" for a key within another, with values as texts. The elements of an array are
/// separated by "|"; keys with arrays of objects or of arrays are left out, and those in under 1 %
/// of the rows. NaN and Infinity are missing values. Lines that are no object, or have more than 64
/// of them in each other, count as ragged. The sample ends early, so that there are about
/// `max_cells` texts at most.
void sample_json(const std::vector<std::string>& lines,
                 std::int64_t max_rows,
                 std::int64_t max_cells,
                 Sample& sample);

}  // namespace satrap::data
