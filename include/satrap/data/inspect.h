#pragma once

#include <cstdint>
#include <string>

#include "satrap/data/loader.h"

namespace satrap::data {

/// The first `num_rows` rows as satrap reads them, before numeric transforms: labels, numbers,
/// and ids in the notation of their type (for a string its hash), with weights. "-" is a missing
/// value or an empty bag.
std::string describe_head(const DataConfig& config,
                          const Schema& schema,
                          Role role,
                          std::int64_t num_rows);

/// Statistics per column over all rows (or the first `max_rows`; 0: all): share of missing values;
/// for numbers minimum, mean, standard deviation and maximum; for ids the number per row, the
/// number of distinct ones (exact up to 65,536, then an estimate with standard error 0.8 %, marked
/// "~") and the most frequent ones (while they are counted exactly). Also the share of positives of
/// each label, rows and bad rows.
std::string describe_stats(const DataConfig& config,
                           const Schema& schema,
                           Role role,
                           std::int64_t max_rows);

}  // namespace satrap::data
