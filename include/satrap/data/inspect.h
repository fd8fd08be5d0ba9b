#pragma once

#include <cstdint>
#include <string>

#include "satrap/data/loader.h"

namespace satrap::data {

/// The first `num_rows` rows as they were understood, one column per line of each row: numbers,
/// ids in the notation of their type (a string's as its hash), weights. Blanks are shown as "-".
std::string describe_head(const DataConfig& config, const Schema& schema, Role role,
                          std::int64_t num_rows);

/// Statistics per column over all rows (or the first `max_rows`): share of missing values; for
/// numbers minimum, mean, standard deviation, maximum; for ids their number per row, how many
/// distinct ones there are (exact up to 65,536, from then on a HyperLogLog estimate, standard error
/// 0.8 %) and the most frequent ones (exact while distinct ids are counted exactly); the share of
/// positive labels; bad rows.
std::string describe_stats(const DataConfig& config, const Schema& schema, Role role,
                           std::int64_t max_rows);

}  // namespace satrap::data
