#pragma once

#include <cstdint>
#include <span>

#include <nlohmann/json_fwd.hpp>

#include "src/trainer/reporter.h"

namespace satrap::trainer {

/// Numbers of a run so far that its lines in metrics.jsonl and its summary have alike: staleness,
/// seconds of each stage, rows, memory, cache, device and loss scale. `histogram`: of staleness.
nlohmann::ordered_json run_numbers(const Reporter::Sources& sources,
                                   std::span<const std::int64_t> histogram);

double mean_staleness(std::span<const std::int64_t> histogram);

}  // namespace satrap::trainer
