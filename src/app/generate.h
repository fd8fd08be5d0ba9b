#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "satrap/core/thread_pool.h"
#include "satrap/data/synthetic.h"

namespace satrap::app {

/// Rows [first_row, first_row + num_rows) of a generator as Criteo TSV (label, numbers, hex ids;
/// blank where missing), given to `write` in order, some megabytes at a time. The text depends on
/// the generator and the row numbers alone. Returns how well the true probabilities predict the
/// labels.
data::BestReachable generate_criteo(const data::SyntheticGenerator& generator,
                                    std::int64_t first_row,
                                    std::int64_t num_rows,
                                    ThreadPool& pool,
                                    const std::function<void(std::string_view)>& write);

}  // namespace satrap::app
