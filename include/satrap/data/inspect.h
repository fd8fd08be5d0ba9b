#pragma once

#include <cstdint>
#include <string>

#include "satrap/data/open_rows.h"

namespace satrap::data {

/// The first `num_rows` rows as satrap reads them: labels; numbers as they are written and, if that
/// differs, as the dense network gets them ("37 -> 0.03"); and ids in the notation of their type
/// (of a string its text and its hash), with weights. "-" is a missing value or an empty bag. A
/// number cut into ranges shows that of each feature made of it. Transforms are fitted to the
/// training data with `seed`, as a run does; without them, where these cannot be read twice.
std::string describe_head(const Dataset& data,
                          Role role,
                          std::int64_t num_rows,
                          std::int64_t seed = 1);

/// Statistics per column over all rows (or the first `max_rows`; 0: all): share of missing values;
/// for numbers minimum, mean, standard deviation and maximum, and those of each input after its
/// transform; for ids the number per row, the number of distinct ones (exact up to 65,536, then an
/// estimate with standard error 0.8 %, marked "~") and the most frequent ones (while they are
/// counted exactly). Also what the labels are (share of positives, mean of numbers, most frequent
/// class; "-": missing everywhere), rows and bad rows.
std::string describe_stats(const Dataset& data,
                           Role role,
                           std::int64_t max_rows,
                           std::int64_t seed = 1);

}  // namespace satrap::data
